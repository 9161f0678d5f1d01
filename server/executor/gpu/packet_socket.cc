#include "server/executor/gpu/packet_socket.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace torpor::executor {
namespace {

constexpr timeval kPatience{5, 0};

// Returns ownership of the message's descriptors.
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

}  // namespace

absl::StatusOr<UniqueFd> DialPacketSocket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return absl::InvalidArgumentError(absl::StrCat("the socket path ", path, " is too long"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd connection(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!connection) return absl::ErrnoToStatus(errno, "socket");
  setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  setsockopt(connection.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  if (connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot reach the socket ", path));
  }
  return connection;
}

absl::StatusOr<std::vector<UniqueFd>> Ask(const UniqueFd& connection, absl::string_view who,
                                          std::span<const std::byte> question,
                                          std::span<std::byte> answer) {
  if (send(connection.get(), question.data(), question.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(question.size())) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot ask ", who));
  }
  iovec data{answer.data(), answer.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxDescriptors)> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t received = 0;
  do {
    received = recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return absl::ErrnoToStatus(errno, absl::StrCat(who, " gave no answer"));
  std::vector<UniqueFd> descriptors = DescriptorsOf(message);
  if (received != static_cast<ssize_t>(answer.size())) {
    return absl::DataLossError(absl::StrCat(who, " gave an answer of the wrong size"));
  }
  return descriptors;
}

}  // namespace torpor::executor
