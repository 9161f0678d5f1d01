#include "server/executor/descriptor_client.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/executor/packet_socket.h"

namespace torpor::executor {
namespace {

absl::Status SystemError(const std::string& what, int error) {
  return absl::ErrnoToStatus(error, what);
}

// The reply, and the descriptor that came with it if one did.
absl::StatusOr<UniqueFd> ReceiveReply(const UniqueFd& connection, wire::DescriptorReply& reply) {
  iovec data{&reply, sizeof reply};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t received = recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC);
  if (received < 0) return SystemError("the descriptor socket gave no answer", errno);
  UniqueFd file;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    file.Reset(fd);
  }
  if (received != static_cast<ssize_t>(sizeof reply)) {
    return absl::DataLossError("the descriptor socket gave an answer of the wrong size");
  }
  return file;
}

}  // namespace

absl::StatusOr<UniqueFd> FetchDescriptor(const std::string& socket_path, SessionId session,
                                         const std::array<std::uint8_t, 16>& key,
                                         wire::SharedMemory what) {
  TORPOR_ASSIGN_OR_RETURN(const UniqueFd connection, DialPacketSocket(socket_path));
  wire::DescriptorRequest request;
  request.session_id = session.value;
  request.key = key;
  request.what = what;
  if (send(connection.get(), &request, sizeof request, MSG_NOSIGNAL) !=
      static_cast<ssize_t>(sizeof request)) {
    return SystemError("cannot ask the descriptor socket", errno);
  }
  wire::DescriptorReply reply;
  TORPOR_ASSIGN_OR_RETURN(UniqueFd file, ReceiveReply(connection, reply));
  if (reply.error != 0) {
    return SystemError(
        absl::StrCat("torpord refused memory file ", static_cast<std::uint32_t>(what),
                     " of session ", session.value),
        reply.error);
  }
  if (!file) return absl::DataLossError("the descriptor socket sent no descriptor");
  return file;
}

}  // namespace torpor::executor
