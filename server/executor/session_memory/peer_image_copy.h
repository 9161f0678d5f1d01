#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/executor/image/peer_pool.h"
#include "server/executor/image/peer_source.h"
#include "server/executor/session_memory/peer_client.h"
#include "server/executor/session_memory/peer_pools.h"

namespace torpor::executor {

// The copy of a session's image in the pool of another executor. Only chunks that no earlier copy
// has used are imported.
class PeerImageCopy final : public PeerCopy {
 public:
  // `pools` must outlive the copy, `identity` the last call of Reach.
  PeerImageCopy(PeerPools& pools, std::string socket_path, const SessionIdentity& identity)
      : pools_(pools), owner_(std::move(socket_path), identity) {}

  absl::StatusOr<std::map<std::uint64_t, CUdeviceptr>> Reach(
      const std::vector<std::uint64_t>& chunks) override;

 private:
  // Finds the pool that the owner has described; the same all the time.
  absl::Status FindPool();
  absl::Status Import(const std::vector<std::uint64_t>& chunks);

  PeerPools& pools_;
  PeerClient owner_;
  std::shared_ptr<PeerPool> pool_;  // from the first answer on
};

}  // namespace torpor::executor
