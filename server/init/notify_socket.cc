#include "server/init/notify_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace torpor::init {
namespace {

constexpr std::size_t kLongestText = 4096;     // as systemd's
constexpr std::size_t kMostDescriptors = 253;  // the kernel's limit for one message

// Takes over the descriptors and the sender in `datagram`.
void TakeControl(msghdr& datagram, NotifySocket::Datagram& message) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&datagram); header != nullptr;
       header = CMSG_NXTHDR(&datagram, header)) {
    if (header->cmsg_level != SOL_SOCKET) continue;
    if (header->cmsg_type == SCM_CREDENTIALS) {
      ucred sender{};
      std::memcpy(&sender, CMSG_DATA(header), sizeof sender);
      message.sender = sender.pid;
    } else if (header->cmsg_type == SCM_RIGHTS) {
      const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int descriptor = -1;
        std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof descriptor, sizeof descriptor);
        message.descriptors.emplace_back(descriptor);
      }
    }
  }
}

}  // namespace

absl::StatusOr<NotifySocket> NotifySocket::Open() {
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address.sun_family;  // no name: the kernel chooses one
  const int yes = 1;
  if (!socket || setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0 ||
      bind(socket.get(), any, length) != 0) {
    return absl::ErrnoToStatus(errno, "cannot open a socket for the program's messages");
  }
  length = sizeof address;
  if (getsockname(socket.get(), any, &length) != 0) {
    return absl::ErrnoToStatus(errno, "the socket for the program's messages has no name");
  }
  std::string name(address.sun_path, length - offsetof(sockaddr_un, sun_path));
  name.front() = '@';
  return NotifySocket(std::move(socket), std::move(name));
}

std::optional<NotifySocket::Datagram> NotifySocket::Receive() {
  std::array<char, kLongestText> text{};
  iovec data = {text.data(), text.size()};
  alignas(cmsghdr)
      std::array<char, CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(int) * kMostDescriptors)>
          control{};
  msghdr datagram = {};
  datagram.msg_iov = &data;
  datagram.msg_iovlen = 1;
  datagram.msg_control = control.data();
  datagram.msg_controllen = control.size();
  const ssize_t bytes = recvmsg(socket_.get(), &datagram, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (bytes < 0) return std::nullopt;
  Datagram message;
  message.text.assign(text.data(), static_cast<std::size_t>(bytes));
  message.is_cut = (datagram.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  TakeControl(datagram, message);
  return message;
}

}  // namespace torpor::init
