#include "server/executor/session_memory/peer_client.h"

#include <span>
#include <utility>

#include "base/status_macros.h"
#include "server/executor/gpu/packet_socket.h"

namespace torpor::executor {

static_assert(kMaxChunks <= kMaxDescriptors);

absl::StatusOr<std::map<std::uint64_t, PeerChunk>> PeerClient::Ask(
    const std::vector<std::uint64_t>& chunks, ChunkUse use) {
  if (!connection_) {
    TORPOR_ASSIGN_OR_RETURN(connection_, DialPacketSocket(socket_path_));
  }
  std::map<std::uint64_t, PeerChunk> answered;
  for (std::size_t at = 0; at < chunks.size();) {
    ChunkRequest request{identity_.id.value, identity_.peer_key, chunks[at], 1, use};
    while (request.count < kMaxChunks && at + request.count < chunks.size() &&
           chunks[at + request.count] == request.first + request.count) {
      ++request.count;
    }
    ChunkReply reply;
    TORPOR_ASSIGN_OR_RETURN(
        std::vector<UniqueFd> descriptors,
        executor::Ask(connection_, "a peer", std::as_bytes(std::span(&request, 1)),
                      std::as_writable_bytes(std::span(&reply, 1))));
    if (reply.error != 0) return absl::ErrnoToStatus(reply.error, "a peer refuses its memory");
    pool_ = reply.pool;
    auto next = descriptors.begin();
    for (std::uint32_t i = 0; i < request.count; ++i) {
      if (reply.numbers[i] == kNoChunk) continue;
      PeerChunk& chunk = answered[request.first + i];
      chunk.number = reply.numbers[i];
      if (use == ChunkUse::kLocate) continue;
      if (next == descriptors.end()) return absl::DataLossError("a peer's descriptor is missing");
      chunk.descriptor = std::move(*next++);
    }
    at += request.count;
  }
  return answered;
}

absl::StatusOr<std::map<std::uint64_t, UniqueFd>> PeerClient::Fetch(
    const std::vector<std::uint64_t>& chunks) {
  TORPOR_ASSIGN_OR_RETURN(auto answered, Ask(chunks, ChunkUse::kShare));
  std::map<std::uint64_t, UniqueFd> fetched;
  for (auto& [index, chunk] : answered) fetched.emplace(index, std::move(chunk.descriptor));
  return fetched;
}

}  // namespace torpor::executor
