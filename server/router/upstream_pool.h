#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <deque>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "server/config/setting_values.h"

namespace torpor::server {

struct UpstreamConnection {
  explicit UpstreamConnection(boost::asio::io_context& io) : stream(io) {}

  boost::beast::tcp_stream stream;
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
  // Finds the addresses of the upstream's host, where they are not known or have grown old. A name
  // server may be slow, and nothing can hurry it: not for those who hold a GPU.
  boost::asio::awaitable<boost::system::error_code> Resolve();
  // Opens a new connection to what was resolved. Its stream's expiry bounds it.
  boost::asio::awaitable<boost::system::error_code> Connect(UpstreamConnection& connection);

  // Whether somebody takes connections there.
  boost::asio::awaitable<bool> IsListening();

  // Takes back a connection after an answer that ended cleanly.
  void Put(std::unique_ptr<UpstreamConnection> connection);
  void CloseIdle();

 private:
  // Closes those that nobody has used for long, now and when there are more.
  void CloseOld();

  boost::asio::io_context& io_;
  const HostAndPort address_;
  boost::asio::ip::tcp::resolver resolver_;
  std::vector<boost::asio::ip::tcp::endpoint> endpoints_;  // where the upstream may listen
  TimePoint resolved_at_{};
  std::deque<std::unique_ptr<UpstreamConnection>> idle_;  // the latest used last
  boost::asio::steady_timer expiry_;                      // of the first of these
  bool is_expiry_awaited_ = false;
};

}  // namespace torpor::server
