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

// The copy of a session's image in the pool of another executor. Only chunks that are not mapped
// yet are imported. Uses the chunks that were reached until destruction.
class PeerImageCopy final : public PeerCopy {
 public:
  // `pools` must outlive the copy, `identity` the last call of Reach.
  PeerImageCopy(PeerPools& pools, std::string socket_path, const SessionIdentity& identity)
      : pools_(pools), owner_(std::move(socket_path), identity) {}
  // No copy from the chunks is pending.
  ~PeerImageCopy() override;
  PeerImageCopy(const PeerImageCopy&) = delete;
  PeerImageCopy& operator=(const PeerImageCopy&) = delete;

  absl::StatusOr<std::map<std::uint64_t, CUdeviceptr>> Reach(
      const std::vector<std::uint64_t>& chunks) override;

 private:
  // Finds the pool that the owner has described; the same all the time.
  absl::Status FindPool();
  // Keeps the chunks mapped that are, or will be.
  absl::Status Use(const std::map<std::uint64_t, PeerChunk>& located);
  absl::Status Import(const std::vector<std::uint64_t>& chunks);

  PeerPools& pools_;
  PeerClient owner_;
  std::shared_ptr<PeerPool> pool_;  // from the first answer on
  std::vector<PeerPool::Number> used_;
};

}  // namespace torpor::executor
