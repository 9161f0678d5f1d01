#include "server/executor/peer_client.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/executor/packet_socket.h"

namespace torpor::executor {
namespace {

// The descriptors that came with a message, closed unless they are taken.
std::vector<UniqueFd> DescriptorsOf(msghdr& message) {
  std::vector<UniqueFd> descriptors;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
  return descriptors;
}

absl::StatusOr<std::vector<UniqueFd>> Ask(const UniqueFd& connection, const ChunkRequest& request,
                                          ChunkReply& reply) {
  if (send(connection.get(), &request, sizeof request, MSG_NOSIGNAL) !=
      static_cast<ssize_t>(sizeof request)) {
    return absl::ErrnoToStatus(errno, "cannot ask a peer for its memory");
  }
  iovec data{&reply, sizeof reply};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostChunks)> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t received = recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC);
  if (received < 0) return absl::ErrnoToStatus(errno, "a peer does not give its memory");
  std::vector<UniqueFd> descriptors = DescriptorsOf(message);
  if (received != static_cast<ssize_t>(sizeof reply)) {
    return absl::DataLossError("a peer gave an answer of the wrong size");
  }
  if (reply.error != 0) return absl::ErrnoToStatus(reply.error, "a peer refuses its memory");
  return descriptors;
}

}  // namespace

absl::StatusOr<std::map<std::uint64_t, UniqueFd>> PeerClient::Fetch(
    const std::vector<std::uint64_t>& chunks) {
  TORPOR_ASSIGN_OR_RETURN(const UniqueFd connection, DialPacketSocket(socket_path_));
  std::map<std::uint64_t, UniqueFd> fetched;
  for (std::size_t at = 0; at < chunks.size();) {
    ChunkRequest request{identity_.id.value, identity_.peer_key, chunks[at], 1, 0};
    while (request.count < kMostChunks && at + request.count < chunks.size() &&
           chunks[at + request.count] == request.first + request.count) {
      ++request.count;
    }
    ChunkReply reply;
    TORPOR_ASSIGN_OR_RETURN(std::vector<UniqueFd> descriptors, Ask(connection, request, reply));
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
