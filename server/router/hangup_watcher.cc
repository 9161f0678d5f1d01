#include "server/router/hangup_watcher.h"

#include <sys/epoll.h>

#include <array>

namespace torpor::server {

HangupWatcher::HangupWatcher(boost::asio::io_context& io)
    : epoll_(io, epoll_create1(EPOLL_CLOEXEC)) {
  WaitForEvents();
}

HangupWatcher::WatchId HangupWatcher::Watch(int socket, std::function<void()> on_hangup) {
  const WatchId watch = ++last_watch_;
  epoll_event event{};
  event.events = EPOLLRDHUP | EPOLLONESHOT;
  event.data.u64 = watch;
  if (epoll_ctl(epoll_.native_handle(), EPOLL_CTL_ADD, socket, &event) == 0) {
    watched_[watch] = {socket, std::move(on_hangup)};
    watch_of_socket_[socket] = watch;
  }
  return watch;
}

void HangupWatcher::Forget(WatchId watch) {
  const auto found = watched_.find(watch);
  if (found == watched_.end()) return;
  // The kernel forgets a closed socket by itself, and another socket may have the number by now.
  const auto latest = watch_of_socket_.find(found->second.socket);
  if (latest != watch_of_socket_.end() && latest->second == watch) {
    epoll_ctl(epoll_.native_handle(), EPOLL_CTL_DEL, found->second.socket, nullptr);
    watch_of_socket_.erase(latest);
  }
  watched_.erase(found);
}

void HangupWatcher::Close() { epoll_.close(); }

void HangupWatcher::WaitForEvents() {
  epoll_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    [this](const boost::system::error_code& error) {
                      if (error) return;
                      HandleEvents();
                      WaitForEvents();
                    });
}

void HangupWatcher::HandleEvents() {
  std::array<epoll_event, 64> events;
  const int count =
      epoll_wait(epoll_.native_handle(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const auto found = watched_.find(events[static_cast<std::size_t>(i)].data.u64);
    if (found == watched_.end()) continue;
    const std::function<void()> on_hangup = std::move(found->second.on_hangup);
    found->second.on_hangup = nullptr;
    if (on_hangup) on_hangup();
  }
}

}  // namespace torpor::server
