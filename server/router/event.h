#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace torpor::server {

// Lets one coroutine wait for what others on the same loop bring about:
//   while (!condition) co_await event.Wait();
class Event {
 public:
  explicit Event(boost::asio::io_context& io)
      : timer_(io, boost::asio::steady_timer::time_point::max()) {}

  boost::asio::awaitable<void> Wait() {
    co_await timer_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }
  // At most until `give_up`.
  boost::asio::awaitable<void> WaitUntil(boost::asio::steady_timer::time_point give_up) {
    timer_.expires_at(give_up);
    co_await timer_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    timer_.expires_at(boost::asio::steady_timer::time_point::max());
  }
  void Notify() { timer_.cancel(); }

 private:
  boost::asio::steady_timer timer_;
};

}  // namespace torpor::server
