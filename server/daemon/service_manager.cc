#include "server/daemon/service_manager.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/unique_fd.h"

namespace torpor::server {

namespace {

// A manager that reads has read within milliseconds.
constexpr timeval kPatience = {.tv_sec = 5, .tv_usec = 0};

struct Address {
  sockaddr_un name{};
  socklen_t length = 0;  // 0: no manager
};

Address ManagerAddress() {
  Address address;
  const char* const variable = std::getenv("NOTIFY_SOCKET");
  const std::string_view path(variable == nullptr ? "" : variable);
  if (path.size() < 2 || path.size() >= sizeof address.name.sun_path) return address;
  address.name.sun_family = AF_UNIX;
  std::memcpy(address.name.sun_path, path.data(), path.size());
  if (path.front() == '@') address.name.sun_path[0] = '\0';  // an abstract socket
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  return address;
}

}  // namespace

void NotifyServiceManager(std::string_view state) { SendToServiceManager(state).IgnoreError(); }

absl::Status SendToServiceManager(std::string_view message, int descriptor) {
  Address address = ManagerAddress();
  if (address.length == 0) {
    return absl::UnavailableError("no service manager: NOTIFY_SOCKET names no socket");
  }
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return absl::ErrnoToStatus(errno, "cannot open a socket");
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  iovec text = {const_cast<char*>(message.data()), message.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptor)> control{};
  msghdr datagram = {};
  datagram.msg_name = &address.name;
  datagram.msg_namelen = address.length;
  datagram.msg_iov = &text;
  datagram.msg_iovlen = 1;
  if (descriptor >= 0) {
    datagram.msg_control = control.data();
    datagram.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&datagram);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  if (sendmsg(socket.get(), &datagram, MSG_NOSIGNAL) >= 0) return absl::OkStatus();
  return absl::UnavailableError(fmt::format(
      "the service manager at {} gets no message: {}", std::getenv("NOTIFY_SOCKET"),
      errno == EAGAIN ? "its socket is full, and it does not read" : std::strerror(errno)));
}

std::optional<std::chrono::microseconds> WatchdogInterval() {
  const char* const text = std::getenv("WATCHDOG_USEC");
  if (text == nullptr) return std::nullopt;
  if (const char* const pid = std::getenv("WATCHDOG_PID");
      pid != nullptr && std::to_string(getpid()) != pid) {
    return std::nullopt;
  }
  std::uint64_t microseconds = 0;
  const char* const end = text + std::strlen(text);
  if (std::from_chars(text, end, microseconds).ptr != end || microseconds == 0) return std::nullopt;
  return std::chrono::microseconds(microseconds / 2);
}

}  // namespace torpor::server
