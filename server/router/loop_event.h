#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "server/router/await.h"

namespace torpor::server {

// Lets coroutines wait for a condition that others on the same loop bring about:
//   while (!condition) co_await event.Wait();
// Notify wakes every waiting coroutine and has no effect on later waits. Not thread-safe.
class LoopEvent {
 public:
  explicit LoopEvent(boost::asio::io_context& io)
      : timer_(io, boost::asio::steady_timer::time_point::max()) {}

  boost::asio::awaitable<void> Wait() { co_await timer_.async_wait(kAwait); }
  // As Wait, no longer than until `late`, for the only coroutine that waits.
  boost::asio::awaitable<void> WaitUntil(boost::asio::steady_timer::time_point late) {
    timer_.expires_at(late);
    co_await timer_.async_wait(kAwait);
    timer_.expires_at(boost::asio::steady_timer::time_point::max());
  }
  void Notify() { timer_.cancel(); }

 private:
  boost::asio::steady_timer timer_;
};

}  // namespace torpor::server
