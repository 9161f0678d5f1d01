#pragma once

#include <string>
#include <vector>

#include "server/executor/image/device_image.h"
#include "server/executor/image/peer_socket.h"
#include "server/executor/session_memory/session_memory.h"

namespace torpor::executor {

// The use of another executor's chunks.
enum class PeerUse {
  kShare,  // to use the image together
  kCopy,   // to copy an image that equals the host image
};

// Fetches chunks of a session's image from the executor that serves `socket_path`.
class PeerClient final : public ChunkOwner {
 public:
  // `identity` must outlive the client.
  PeerClient(std::string socket_path, const SessionIdentity& identity, PeerUse use)
      : socket_path_(std::move(socket_path)), identity_(identity), use_(use) {}

  absl::StatusOr<std::map<std::uint64_t, UniqueFd>> Fetch(
      const std::vector<std::uint64_t>& chunks) override;

 private:
  const std::string socket_path_;
  const SessionIdentity& identity_;
  const PeerUse use_;
};

}  // namespace torpor::executor
