#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <deque>
#include <memory>

#include "base/clock.h"
#include "server/config/setting_values.h"

namespace torpor::server {

struct UpstreamConnection {
  explicit UpstreamConnection(boost::asio::io_context& io) : stream(io), resolver(io) {}

  boost::beast::tcp_stream stream;
  boost::asio::ip::tcp::resolver resolver;
  boost::beast::flat_buffer buffer;  // bytes read beyond the last answer
  bool is_reused = false;
  TimePoint idle_since{};
};

// Kept-alive connections to one function's server. Used on the router's thread.
class UpstreamPool {
 public:
  UpstreamPool(boost::asio::io_context& io, HostAndPort address);

  // An idle connection that the upstream has not closed, else nothing.
  std::unique_ptr<UpstreamConnection> TakeIdle();
  std::unique_ptr<UpstreamConnection> MakeNew();
  // Opens a new connection. Its stream's expiry bounds it.
  boost::asio::awaitable<boost::system::error_code> Connect(UpstreamConnection& connection);

  // Whether somebody takes connections there.
  boost::asio::awaitable<bool> IsListening();

  // Takes back a connection after an answer that ended cleanly.
  void Put(std::unique_ptr<UpstreamConnection> connection);
  void CloseIdle() { idle_.clear(); }

 private:
  boost::asio::io_context& io_;
  const HostAndPort address_;
  std::deque<std::unique_ptr<UpstreamConnection>> idle_;  // the latest used last
};

}  // namespace torpor::server
