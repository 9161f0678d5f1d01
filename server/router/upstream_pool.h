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

// A connection to a function's server.
struct UpstreamConnection {
  explicit UpstreamConnection(boost::asio::io_context& io) : stream(io) {}

  boost::beast::tcp_stream stream;
  boost::beast::flat_buffer buffer;  // bytes read beyond the last answer
  bool is_reused = false;
  TimePoint idle_since{};
};

// Keeps connections to one function's server alive between requests. Shared. Used on the router's
// thread.
class UpstreamPool : public std::enable_shared_from_this<UpstreamPool> {
 public:
  UpstreamPool(boost::asio::io_context& io, HostAndPort address);

  // Takes an idle connection that the upstream has not closed; nullptr if there is none.
  std::unique_ptr<UpstreamConnection> TakeIdle();
  std::unique_ptr<UpstreamConnection> MakeNew();
  // Finds the addresses of the upstream's host, unless known recently. Call before taking a lease:
  // a name server may be slow.
  boost::asio::awaitable<boost::system::error_code> Resolve();
  // Connects to a resolved address, until the stream's expiry.
  boost::asio::awaitable<boost::system::error_code> Connect(UpstreamConnection& connection);

  // Whether the upstream accepts connections.
  boost::asio::awaitable<bool> IsListening();

  // Takes back a connection after a clean end of an answer.
  void Put(std::unique_ptr<UpstreamConnection> connection);
  void CloseIdle();

 private:
  // Closes connections that were idle for long, now and at the time when others become so.
  void CloseOld();

  boost::asio::io_context& io_;
  const HostAndPort address_;
  boost::asio::ip::tcp::resolver resolver_;
  std::vector<boost::asio::ip::tcp::endpoint> endpoints_;  // addresses of the upstream's host
  TimePoint resolved_at_{};
  std::deque<std::unique_ptr<UpstreamConnection>> idle_;  // least recently used first
  boost::asio::steady_timer expiry_;                      // of the first of idle_
  bool is_expiry_awaited_ = false;
};

}  // namespace torpor::server
