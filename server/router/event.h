#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "server/router/await.h"

namespace torpor::server {

// Lets one coroutine wait for what others on the same loop bring about:
//   while (!condition) co_await event.Wait();
class Event {
 public:
  explicit Event(boost::asio::io_context& io)
      : timer_(io, boost::asio::steady_timer::time_point::max()) {}

  boost::asio::awaitable<void> Wait() { co_await timer_.async_wait(kAwait); }
  void Notify() { timer_.cancel(); }

 private:
  boost::asio::steady_timer timer_;
};

}  // namespace torpor::server
