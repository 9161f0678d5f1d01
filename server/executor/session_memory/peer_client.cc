#include "server/executor/session_memory/peer_client.h"

#include <span>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "server/executor/gpu/packet_socket.h"

namespace torpor::executor {

static_assert(kMaxChunks <= kMaxDescriptors);

absl::StatusOr<std::map<std::uint64_t, UniqueFd>> PeerClient::Fetch(
    const std::vector<std::uint64_t>& chunks) {
  TORPOR_ASSIGN_OR_RETURN(const UniqueFd connection, DialPacketSocket(socket_path_));
  std::map<std::uint64_t, UniqueFd> fetched;
  for (std::size_t at = 0; at < chunks.size();) {
    ChunkRequest request{identity_.id.value, identity_.peer_key, chunks[at], 1,
                         use_ == PeerUse::kCopy};
    while (request.count < kMaxChunks && at + request.count < chunks.size() &&
           chunks[at + request.count] == request.first + request.count) {
      ++request.count;
    }
    ChunkReply reply;
    TORPOR_ASSIGN_OR_RETURN(std::vector<UniqueFd> descriptors,
                            Ask(connection, "a peer", std::as_bytes(std::span(&request, 1)),
                                std::as_writable_bytes(std::span(&reply, 1))));
    if (reply.error != 0) return absl::ErrnoToStatus(reply.error, "a peer refuses its memory");
    auto next = descriptors.begin();
    for (std::uint32_t i = 0; i < request.count; ++i) {
      if (reply.is_there[i] == 0) continue;
      if (next == descriptors.end()) return absl::DataLossError("a peer's descriptor is missing");
      fetched.emplace(request.first + i, std::move(*next++));
    }
    at += request.count;
  }
  return fetched;
}

}  // namespace torpor::executor
