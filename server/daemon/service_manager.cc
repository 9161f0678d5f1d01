#include "server/daemon/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/unique_fd.h"

namespace torpor::server {

void NotifyServiceManager(std::string_view state) {
  const char* const name = std::getenv("NOTIFY_SOCKET");
  if (name == nullptr) return;
  const std::string_view path(name);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() < 2 || path.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path.front() == '@') address.sun_path[0] = '\0';  // an abstract socket
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
         reinterpret_cast<const sockaddr*>(&address), length);
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
