#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <memory>

#include "server/router/answer.h"
#include "server/router/router_core.h"

namespace torpor::server {

// The set of paths that a listener answers.
enum class ListenerRole { kRequests, kMetrics };

// A connection of a client: reads requests one after another and answers each. Used on the
// router's thread.
class ClientConnection : public std::enable_shared_from_this<ClientConnection> {
 public:
  ClientConnection(RouterCore& core, boost::asio::ip::tcp::socket socket, ListenerRole role);
  ~ClientConnection();

  // Serves until the client closes or either side ends keep-alive. Keep the object alive meanwhile.
  boost::asio::awaitable<void> Serve();

  // Closes the connection if no request is in progress.
  void CloseIfIdle();
  // Closes the connection in any state.
  void Abort();

 private:
  struct Request;

  boost::asio::awaitable<bool> WaitForBytes();
  boost::asio::awaitable<bool> ServeOne();
  boost::asio::awaitable<bool> AnswerBrokenHeader(const boost::system::error_code& error);
  boost::asio::awaitable<bool> Proxy(Request& request);
  boost::asio::awaitable<bool> SendOwn(const Request& request, Answer answer, bool may_keep = true);
  boost::asio::awaitable<Answer> OwnAnswer(const Request& request);
  boost::asio::awaitable<Answer> MetricsAnswer();
  // As NodeInquiry::AskReadiness; a router that drains is not ready.
  boost::asio::awaitable<Readiness> AskReadiness(const std::string& function);
  // Whether a server at one of `upstreams` takes connections.
  boost::asio::awaitable<bool> IsAnyListening(const std::vector<std::string>& upstreams);
  boost::asio::awaitable<Answer> FunctionReadyAnswer(const Request& request);
  boost::asio::awaitable<void> CloseGently();

  RouterCore& core_;
  boost::beast::tcp_stream stream_;
  const ListenerRole role_;
  boost::beast::flat_buffer buffer_;
  bool is_idle_ = false;
  bool has_served_ = false;
  std::function<void()> abort_proxied_;  // set while a request is proxied
};

}  // namespace torpor::server
