#pragma once

#include <string>
#include <vector>

#include "server/executor/device_image.h"
#include "server/executor/peer_socket.h"
#include "server/executor/session_memory.h"

namespace torpor::executor {

// Fetches chunks of a session's image from the executor that serves `socket_path`.
class PeerClient final : public ChunkOwner {
 public:
  // `identity` must outlive this.
  PeerClient(std::string socket_path, const SessionIdentity& identity)
      : socket_path_(std::move(socket_path)), identity_(identity) {}

  absl::StatusOr<std::map<std::uint64_t, UniqueFd>> Fetch(
      const std::vector<std::uint64_t>& chunks) override;

 private:
  const std::string socket_path_;
  const SessionIdentity& identity_;
};

}  // namespace torpor::executor
