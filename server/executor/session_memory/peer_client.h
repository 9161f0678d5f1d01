#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "server/executor/image/image_backing.h"
#include "server/executor/image/peer_socket.h"
#include "server/executor/session_memory/session_memory.h"

namespace torpor::executor {

// A chunk as another executor has described it.
struct PeerChunk {
  std::uint32_t number = 0;  // in the pool of the other executor
  UniqueFd descriptor;       // none if only located
};

// Asks the executor that serves `socket_path` about chunks of a session's image. Connects at the
// first question. Not thread-safe.
class PeerClient final : public ChunkOwner {
 public:
  // `identity` must outlive the client.
  PeerClient(std::string socket_path, const SessionIdentity& identity)
      : socket_path_(std::move(socket_path)), identity_(identity) {}

  // Returns the chunks (ascending) that the other executor has backed, by chunk.
  absl::StatusOr<std::map<std::uint64_t, PeerChunk>> Ask(const std::vector<std::uint64_t>& chunks,
                                                         ChunkUse use);
  // ChunkOwner, to use the image together.
  absl::StatusOr<std::map<std::uint64_t, UniqueFd>> Fetch(
      const std::vector<std::uint64_t>& chunks) override;

  // The other executor's pool, as of the last answer.
  const PoolDescription& pool() const { return pool_; }
  const std::string& socket_path() const { return socket_path_; }
  const UniqueFd& connection() const { return connection_; }

 private:
  const std::string socket_path_;
  const SessionIdentity& identity_;
  UniqueFd connection_;
  PoolDescription pool_;
};

}  // namespace torpor::executor
