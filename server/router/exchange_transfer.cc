#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <utility>

#include "server/router/await.h"
#include "server/router/end_to_end_fields.h"
#include "server/router/exchange.h"
#include "server/settings/value_text.h"

// Between the router and the function's server.
namespace torpor::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::uint32_t kMaxUpstreamHeaderBytes = 256 * 1024;

bool IsIdempotent(http::verb method) {
  return method == http::verb::get || method == http::verb::head || method == http::verb::put ||
         method == http::verb::delete_ || method == http::verb::options;
}

}  // namespace

// Sends the request and returns once there is something to answer the client with.
asio::awaitable<void> Exchange::Forward() {
  for (;;) {
    if (!co_await OpenUpstream()) co_return;
    StartTransfer();
    const auto has_answer = [this] { return is_download_done_ || (response_ && !FitsBuffer()); };
    while (!has_answer() && failure_ == Failure::kNone) co_await changed_.Wait();
    if (failure_ != Failure::kUpstreamBroken || !MayTryAgain()) co_return;
    // What fails from here on is not the first try.
    failure_ = Failure::kNone;
    failure_detail_.clear();
    co_await EndTransfer();
    if (failure_ != Failure::kNone) co_return;
  }
}

asio::awaitable<bool> Exchange::OpenUpstream() {
  UpstreamPool& pool = core_.upstreams.at(function_.name);
  const bool is_first_try = upstream_ == nullptr;
  upstream_ = is_first_try ? pool.TakeIdle() : nullptr;
  const bool is_connected = upstream_ != nullptr;
  if (!is_connected) upstream_ = pool.MakeNew();
  upstream_->stream.expires_at(granted_at_ + function_.upstream_timeout);
  if (is_connected) co_return true;
  const ErrorCode error = co_await pool.Connect(*upstream_);
  if (!error) co_return failure_ == Failure::kNone;
  Fail(error == beast::error::timeout ? Failure::kUpstreamTimeout : Failure::kUpstreamDown,
       fmt::format("{}: {}", function_.upstream, error.message()));
  co_return false;
}

void Exchange::StartTransfer() {
  is_upload_done_ = false;
  transfers_ = 2;
  const auto on_end = [this](const std::exception_ptr& exception) {
    --transfers_;
    if (exception) Fail(Failure::kUpstreamBroken, "an error inside torpord");
    changed_.Notify();
  };
  asio::co_spawn(core_.io, Upload(), on_end);
  asio::co_spawn(core_.io, Download(), on_end);
}

// Upload and Download use this object: nothing ends before they have.
asio::awaitable<void> Exchange::EndTransfer() {
  if (transfers_ == 0) co_return;
  is_ending_transfer_ = true;
  if (upstream_ != nullptr) upstream_->stream.close();
  room_.Notify();
  // An answer may come before the whole request was sent; then the client's rest is not read.
  client_.stream.cancel();
  while (transfers_ > 0) co_await changed_.Wait();
  is_ending_transfer_ = false;
}

// The upstream closed a kept-alive connection just as the request went out.
bool Exchange::MayTryAgain() const {
  return upstream_ != nullptr && upstream_->is_reused && !is_response_begun_ &&
         client_.parser.is_done() && IsIdempotent(client_.parser.get().method());
}

asio::awaitable<void> Exchange::Upload() { is_upload_done_ = co_await UploadPieces(); }

asio::awaitable<bool> Exchange::UploadPieces() {
  RequestHead head = upstream_head_;
  const auto& request = client_.parser.get();
  const bool is_whole = client_.parser.is_done();
  const bool has_body = !is_whole || !body_.empty() || request.has_content_length();
  if (is_whole && has_body) {
    head.content_length(body_.size());
  } else if (has_body && client_.parser.content_length()) {
    head.content_length(*client_.parser.content_length());
  } else if (has_body) {
    head.chunked(true);
  }
  // Without data nothing is sent; an empty chunk would end the body.
  head.body().data = body_.empty() ? nullptr : body_.data();
  head.body().size = body_.size();
  head.body().more = !is_whole;
  http::request_serializer<http::buffer_body> serializer(head);
  std::string piece;
  for (;;) {
    const auto [error, bytes] = co_await http::async_write(upstream_->stream, serializer, kAwait);
    if (!error) co_return true;
    // An upstream may answer without reading all; Download tells whether it did.
    if (error != http::error::need_buffer) co_return false;
    piece.resize(kPieceBytes);
    auto& body = client_.parser.get().body();
    body.data = piece.data();
    body.size = piece.size();
    if (!client_.parser.is_done()) {
      client_.stream.expires_after(core_.config.router.client_timeout);
      const auto [read_error, read_bytes] =
          co_await http::async_read_some(client_.stream, client_.buffer, client_.parser, kAwait);
      if (read_error && read_error != http::error::need_buffer) {
        if (!is_download_done_) FailClient(read_error);
        co_return false;
      }
    }
    head.body().size = piece.size() - body.size;
    head.body().data = head.body().size == 0 ? nullptr : piece.data();
    head.body().more = !client_.parser.is_done();
  }
}

asio::awaitable<void> Exchange::Download() {
  std::optional<ResponseParser> parser;
  if (!co_await ReadResponseHead(parser)) co_return;
  changed_.Notify();
  if (!co_await ReadResponseBody(*parser)) co_return;
  if (IsServerError()) co_await ConfirmLease();
  if (failure_ == Failure::kNone) FinishDownload(*parser);
}

asio::awaitable<bool> Exchange::ReadResponseHead(std::optional<ResponseParser>& parser) {
  for (;;) {
    parser.emplace();
    parser->header_limit(kMaxUpstreamHeaderBytes);
    parser->body_limit(boost::none);
    parser->skip(is_head_request_);
    const auto [error, bytes] =
        co_await http::async_read_header(upstream_->stream, upstream_->buffer, *parser, kAwait);
    is_response_begun_ = is_response_begun_ || bytes > 0;
    if (error) {
      co_await FailUpstream(error);
      co_return false;
    }
    const unsigned status = parser->get().result_int();
    if (status >= 200) break;
    if (status == 101) {
      Fail(Failure::kUpstreamBroken, "it switched protocols unasked");
      co_return false;
    }
  }
  const auto& answer = parser->get();
  response_.emplace();
  response_->version(11);
  response_->result(answer.result_int());
  response_->reason(answer.reason());
  CopyEndToEnd(answer, *response_);
  if (answer.has_content_length() && !answer.chunked()) {
    // Of an answer without a body (HEAD, 304) the parser does not tell it.
    const std::string_view text = View(answer[http::field::content_length]);
    if (const auto length = ParseUnsigned(text); length.ok()) response_length_ = *length;
  }
  co_return true;
}

asio::awaitable<bool> Exchange::ReadResponseBody(ResponseParser& parser) {
  while (!parser.is_done()) {
    while (buffered_bytes_ >= core_.config.router.response_buffer_bytes &&
           failure_ == Failure::kNone) {
      co_await room_.Wait();
    }
    if (failure_ != Failure::kNone) co_return false;
    const std::uint64_t remaining = parser.content_length_remaining().value_or(kPieceBytes);
    std::string piece(std::clamp<std::uint64_t>(remaining, 1, kPieceBytes), '\0');
    auto& body = parser.get().body();
    body.data = piece.data();
    body.size = piece.size();
    const auto [error, bytes] =
        co_await http::async_read_some(upstream_->stream, upstream_->buffer, parser, kAwait);
    if (error && error != http::error::need_buffer) {
      co_await FailUpstream(error);
      co_return false;
    }
    piece.resize(piece.size() - body.size);
    if (piece.empty()) continue;
    buffered_bytes_ += piece.size();
    pieces_.push_back(std::move(piece));
    changed_.Notify();
  }
  co_return true;
}

// The GPU is free for others from here on, however slowly the client takes the answer.
void Exchange::FinishDownload(const ResponseParser& parser) {
  upstream_end_ = SteadyClock().Now();
  is_download_done_ = true;
  // A client that has its answer may go; nothing is left to cancel.
  core_.hangups.Forget(watch_);
  ReleaseLease();
  if (is_upload_done_ && parser.keep_alive() && upstream_->buffer.size() == 0) {
    core_.upstreams.at(function_.name).Put(std::move(upstream_));
  } else {
    upstream_->stream.close();
  }
  changed_.Notify();
}

asio::awaitable<void> Exchange::FailUpstream(ErrorCode error) {
  if (is_ending_transfer_) co_return;
  const bool is_late = error == beast::error::timeout;
  if (!is_late && failure_ == Failure::kNone) co_await ConfirmLease();
  Fail(is_late ? Failure::kUpstreamTimeout : Failure::kUpstreamBroken, error.message());
}

}  // namespace torpor::server
