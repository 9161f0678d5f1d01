#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <unordered_map>

namespace torpor::server {

// Reports that a socket's peer has closed its side, even while unread bytes wait in the socket,
// which Asio's waiting cannot. Uses an epoll instance for EPOLLRDHUP only. Used on the loop's
// thread.
class HangupWatcher {
 public:
  using WatchId = std::uint64_t;

  explicit HangupWatcher(boost::asio::io_context& io);

  // Watches a socket. Calls `on_hangup` at most once, on the loop, and not after Forget.
  WatchId Watch(int socket, std::function<void()> on_hangup);
  void Forget(WatchId watch);

  // Stops waiting, so that the loop can end.
  void Close();

 private:
  struct Watched {
    int socket = -1;
    std::function<void()> on_hangup;
  };

  void WaitForEvents();
  void HandleEvents();

  boost::asio::posix::stream_descriptor epoll_;
  WatchId last_watch_ = 0;
  std::unordered_map<WatchId, Watched> watched_;
  std::unordered_map<int, WatchId> watch_of_socket_;
};

}  // namespace torpor::server
