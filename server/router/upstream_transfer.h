#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/http/parser.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/router/client_request.h"
#include "server/router/loop_event.h"
#include "server/router/request_failure.h"
#include "server/router/request_lease.h"
#include "server/router/response_buffer.h"
#include "server/router/upstream_pool.h"

namespace torpor::server {

// Carries one request to its function's server and the answer into the ResponseBuffer. Two
// coroutines run at one time: Upload, from the spool to the upstream, and Download, from upstream
// into the buffer. The lease is needed until the buffer has the whole answer. Used on the router's
// thread.
class UpstreamTransfer {
 public:
  // The transfer's environment; must outlive the transfer.
  struct Parts {
    boost::asio::io_context& io;
    const FunctionConfig& function;
    ClientRequest& request;
    ResponseBuffer& response;
    RequestLease& lease;
    RequestFailure& failure;
    LoopEvent& changed;  // notified when the head, a piece or the end of the answer comes
  };

  // `head` is sent to the upstream. `on_answered` is called when the whole answer is in the buffer,
  // so that the GPU is free from then on, however slowly the client takes the answer.
  UpstreamTransfer(const Parts& parts, ClientRequest::Head head, std::function<void()> on_answered)
      : parts_(parts),
        head_(std::move(head)),
        on_answered_(std::move(on_answered)),
        room_(parts.io) {}

  // Sends the request to `upstream`, host:port, and returns once there is an answer to begin with,
  // or the request has failed. An idempotent request that met a closing kept-alive connection is
  // sent again. Needs a granted lease, from whose grant the answer may take upstream_timeout.
  // `pool`: the upstream's, or null if there is none. Call again, after End, only if
  // MayGoElsewhere.
  boost::asio::awaitable<void> Forward(const std::string& upstream,
                                       const std::shared_ptr<UpstreamPool>& pool);
  // Whether the failed request may be sent to another server of the function: nothing of an answer
  // came. A function that keeps state must not have got the request.
  bool MayGoElsewhere() const;
  // Breaks off and returns once neither coroutine runs. Before the destructor.
  boost::asio::awaitable<void> End();
  // The client has taken a piece: there may be room for another one.
  void OnPieceTaken() { room_.Notify(); }
  // Breaks off what waits, after a failure.
  void Interrupt();

 private:
  using ErrorCode = boost::system::error_code;
  template <typename T>
  using Awaitable = boost::asio::awaitable<T>;
  using Parser = boost::beast::http::response_parser<boost::beast::http::buffer_body>;

  Awaitable<void> ForwardOnce();
  Awaitable<bool> Open();
  void Start();
  bool MayTryAgain() const;
  Awaitable<void> Upload();
  Awaitable<bool> UploadPieces();
  void DropSentBody();
  Awaitable<void> Download();
  Awaitable<bool> ReadHead(std::optional<Parser>& parser);
  Awaitable<bool> ReadBody(Parser& parser);
  void Finish(const Parser& parser);
  Awaitable<void> Fail(ErrorCode error);

  const Parts parts_;
  const ClientRequest::Head head_;
  const std::function<void()> on_answered_;
  LoopEvent room_;
  std::string upstream_;
  std::shared_ptr<UpstreamPool> pool_;
  std::unique_ptr<UpstreamConnection> connection_;
  int running_ = 0;  // of Upload and Download
  bool is_ending_ = false;
  bool is_upload_over_ = false;  // whether done or broken off
  bool is_upload_done_ = false;
  bool is_response_begun_ = false;  // a byte of the answer came
};

}  // namespace torpor::server
