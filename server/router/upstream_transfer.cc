#include "server/router/upstream_transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <utility>

#include "server/router/await.h"

namespace torpor::server {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Cause = RequestFailure::Cause;

static constexpr std::uint32_t kMaxUpstreamHeaderBytes = 256 * 1024;
static constexpr std::uint64_t kAnswerPieceBytes = std::uint64_t{64} * 1024;

asio::awaitable<void> UpstreamTransfer::Forward(const std::string& upstream,
                                                const std::shared_ptr<UpstreamPool>& pool) {
  upstream_ = upstream;
  pool_ = pool;
  connection_.reset();
  if (pool_ == nullptr) {
    parts_.failure.Set(Cause::kUpstreamDown, "it has no upstream");
    co_return;
  }
  co_await ForwardOnce();
}

asio::awaitable<void> UpstreamTransfer::ForwardOnce() {
  for (;;) {
    // Not within the `if`: code of GCC 12.2 -O3 then uses the frame of Open for other things.
    const bool is_open = co_await Open();
    if (!is_open) co_return;
    Start();
    while (!parts_.response.CanBegin() && !parts_.failure) co_await parts_.changed.Wait();
    if (parts_.failure.cause() != Cause::kUpstreamBroken || !MayTryAgain()) co_return;
    // What fails from here on is not the first try.
    parts_.failure.Clear();
    co_await End();
    if (parts_.failure) co_return;
  }
}

asio::awaitable<bool> UpstreamTransfer::Open() {
  const bool is_first_try = connection_ == nullptr;
  connection_ = is_first_try ? pool_->TakeIdle() : nullptr;
  const bool is_connected = connection_ != nullptr;
  if (!is_connected) connection_ = pool_->MakeNew();
  connection_->stream.expires_at(parts_.lease.granted_at() + parts_.function.held_at_most());
  if (is_connected) co_return true;
  // Known, as a rule, from before the grant.
  ErrorCode error = co_await pool_->Resolve();
  if (!error) error = co_await pool_->Connect(*connection_);
  if (!error) co_return !parts_.failure;
  parts_.failure.Set(
      error == beast::error::timeout ? Cause::kUpstreamTimeout : Cause::kUpstreamDown,
      fmt::format("{}: {}", upstream_, error.message()));
  co_return false;
}

void UpstreamTransfer::Start() {
  is_upload_over_ = false;
  is_upload_done_ = false;
  running_ = 2;
  const auto on_end = [this](const std::exception_ptr& exception) {
    --running_;
    if (exception) parts_.failure.Set(Cause::kUpstreamBroken, "an error inside the router");
    parts_.changed.Notify();
  };
  asio::co_spawn(parts_.io, Upload(), on_end);
  asio::co_spawn(parts_.io, Download(), on_end);
}

// Waits for Upload and Download, as both use this object.
asio::awaitable<void> UpstreamTransfer::End() {
  if (running_ == 0) co_return;
  is_ending_ = true;
  if (connection_ != nullptr) connection_->stream.close();
  room_.Notify();
  while (running_ > 0) co_await parts_.changed.Wait();
  is_ending_ = false;
}

void UpstreamTransfer::Interrupt() {
  if (connection_ != nullptr) connection_->stream.close();
  room_.Notify();
}

// The upstream closed a kept-alive connection just as the request went out.
bool UpstreamTransfer::MayTryAgain() const {
  return connection_ != nullptr && connection_->is_reused && !is_response_begun_ &&
         parts_.request.IsIdempotent();
}

bool UpstreamTransfer::MayGoElsewhere() const {
  if (is_response_begun_) return false;
  const Cause cause = parts_.failure.cause();
  // Nothing of the request was sent.
  if (cause == Cause::kUpstreamDown) return true;
  return cause == Cause::kUpstreamBroken && parts_.function.second_tries;
}

asio::awaitable<void> UpstreamTransfer::Upload() {
  is_upload_done_ = co_await UploadPieces();
  is_upload_over_ = true;
  DropSentBody();
}

asio::awaitable<bool> UpstreamTransfer::UploadPieces() {
  ClientRequest& request = parts_.request;
  ClientRequest::Head head = head_;
  if (request.has_body()) head.content_length(request.body().size());
  http::request_serializer<http::buffer_body> serializer(head);
  std::string piece;
  for (std::uint64_t sent = 0;;) {
    const absl::Status status = co_await request.body().Read(sent, piece);
    if (!status.ok()) {
      parts_.failure.Set(Cause::kNoRoomForBody, std::string(status.message()));
      co_return false;
    }
    sent += piece.size();
    head.body().data = piece.empty() ? nullptr : piece.data();
    head.body().size = piece.size();
    head.body().more = sent < request.body().size();
    const auto [error, bytes] = co_await http::async_write(connection_->stream, serializer, kAwait);
    if (!error) co_return true;
    // An upstream may answer without reading all; Download tells whether it did.
    if (error != http::error::need_buffer) co_return false;
  }
}

// Once an answer has begun, the request is not sent a second time.
void UpstreamTransfer::DropSentBody() {
  if (is_upload_over_ && is_response_begun_) parts_.request.DropBody();
}

asio::awaitable<void> UpstreamTransfer::Download() {
  std::optional<Parser> parser;
  if (!co_await ReadHead(parser)) co_return;
  parts_.changed.Notify();
  if (!co_await ReadBody(*parser)) co_return;
  if (parts_.response.IsServerError()) co_await parts_.lease.Confirm();
  if (parts_.function.saves_requests() && !parts_.failure) {
    co_await parts_.lease.Save(parts_.lease.granted_at() + parts_.function.held_at_most());
  }
  if (!parts_.failure) Finish(*parser);
}

asio::awaitable<bool> UpstreamTransfer::ReadHead(std::optional<Parser>& parser) {
  for (;;) {
    parser.emplace();
    parser->header_limit(kMaxUpstreamHeaderBytes);
    parser->body_limit(boost::none);
    parser->skip(parts_.request.is_head_request());
    const auto [error, bytes] =
        co_await http::async_read_header(connection_->stream, connection_->buffer, *parser, kAwait);
    // What the parser has not consumed counts, too.
    is_response_begun_ = is_response_begun_ || bytes > 0 || connection_->buffer.size() > 0;
    if (error) {
      co_await Fail(error);
      co_return false;
    }
    const unsigned status = parser->get().result_int();
    if (status >= 200) break;
    if (status == 101) {
      parts_.failure.Set(Cause::kUpstreamBroken, "it switched protocols unasked");
      co_return false;
    }
  }
  DropSentBody();
  parts_.response.SetHead(parser->get());
  co_return true;
}

asio::awaitable<bool> UpstreamTransfer::ReadBody(Parser& parser) {
  while (!parser.is_done()) {
    while (parts_.response.IsFull() && !parts_.failure) co_await room_.Wait();
    if (parts_.failure) co_return false;
    const std::uint64_t remaining = parser.content_length_remaining().value_or(kAnswerPieceBytes);
    std::string piece(std::clamp<std::uint64_t>(remaining, 1, kAnswerPieceBytes), '\0');
    auto& body = parser.get().body();
    body.data = piece.data();
    body.size = piece.size();
    const auto [error, bytes] =
        co_await http::async_read_some(connection_->stream, connection_->buffer, parser, kAwait);
    if (error && error != http::error::need_buffer) {
      co_await Fail(error);
      co_return false;
    }
    piece.resize(piece.size() - body.size);
    if (piece.empty()) continue;
    parts_.response.Append(std::move(piece));
    parts_.changed.Notify();
  }
  co_return true;
}

void UpstreamTransfer::Finish(const Parser& parser) {
  parts_.response.Complete(SteadyClock().Now());
  on_answered_();
  if (is_upload_done_ && parser.keep_alive() && connection_->buffer.size() == 0) {
    pool_->Put(std::move(connection_));
  } else {
    connection_->stream.close();
  }
  parts_.changed.Notify();
}

asio::awaitable<void> UpstreamTransfer::Fail(ErrorCode error) {
  if (is_ending_) co_return;
  const bool is_late = error == beast::error::timeout;
  if (!is_late && !parts_.failure) co_await parts_.lease.Confirm();
  parts_.failure.Set(is_late ? Cause::kUpstreamTimeout : Cause::kUpstreamBroken, error.message());
}

}  // namespace torpor::server
