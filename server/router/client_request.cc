#include "server/router/client_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>
#include <utility>

#include "server/router/await.h"
#include "server/router/end_to_end_fields.h"
#include "server/router/header_rules.h"

namespace torpor::server {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Cause = RequestFailure::Cause;

ClientRequest::ClientRequest(Source source, const RouterConfig& config, RequestFailure& failure)
    : source_(std::move(source)),
      config_(config),
      failure_(failure),
      is_head_request_(source_.parser.get().method() == http::verb::head) {}

bool ClientRequest::SaysWhereItEnds(const Head::header_type& head) {
  const std::size_t codings = head.count(http::field::transfer_encoding);
  if (codings == 0) return true;
  return codings == 1 && head.version() == 11 &&
         EqualsIgnoringCase(View(head[http::field::transfer_encoding]), "chunked");
}

std::optional<Refusal> ClientRequest::FindRefusal() const {
  const auto& request = source_.parser.get();
  if (request.count(http::field::upgrade) > 0) {
    return Refusal{501, "upgrade",
                   "protocol upgrades (WebSocket, h2c) are not proxied; use HTTP/1.1"};
  }
  if (!SaysWhereItEnds(request.base())) {
    return Refusal{501, "transfer_encoding",
                   "the only transfer coding taken is chunked, once, and of HTTP/1.1"};
  }
  const std::string_view expected = View(request[http::field::expect]);
  if (!expected.empty() && !EqualsIgnoringCase(expected, "100-continue")) {
    return Refusal{417, "expectation", "the only expectation met is 100-continue"};
  }
  return std::nullopt;
}

ClientRequest::Head ClientRequest::MakeUpstreamHead(const std::string& target,
                                                    const std::string& request_id) const {
  const auto& request = source_.parser.get();
  Head head;
  head.method_string(request.method_string());
  head.target(target);
  head.version(11);
  CopyEndToEnd(request, head);
  head.erase(http::field::expect);
  std::string forwarded_for;
  const auto earlier = request.equal_range("X-Forwarded-For");
  for (auto field = earlier.first; field != earlier.second; ++field) {
    forwarded_for += fmt::format("{}, ", View(field->value()));
  }
  head.set("X-Forwarded-For", forwarded_for + source_.address);
  // A TLS terminator before the router knows better.
  if (request.find("X-Forwarded-Proto") == request.end()) head.set("X-Forwarded-Proto", "http");
  head.set("X-Request-Id", request_id);
  return head;
}

asio::awaitable<bool> ClientRequest::ReadAhead() {
  const bool has_read = co_await ReadToBuffer();
  is_held_ = has_read && is_read();
  co_return has_read;
}

asio::awaitable<bool> ClientRequest::ReadToBuffer() {
  if (is_read()) co_return true;
  if (source_.parser.get().count(http::field::expect) > 0) {
    source_.stream.expires_after(config_.client_timeout);
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    const auto [error, bytes] =
        co_await asio::async_write(source_.stream, asio::buffer(kContinue), kAwait);
    if (error) {
      failure_.Set(Cause::kClientGone, error.message());
      co_return false;
    }
  }
  while (!is_read() && ahead_.size() < config_.request_buffer_bytes) {
    const std::size_t before = ahead_.size();
    ahead_.resize(std::min<std::size_t>(config_.request_buffer_bytes, before + kPieceBytes));
    auto& body = source_.parser.get().body();
    body.data = ahead_.data() + before;
    body.size = ahead_.size() - before;
    source_.stream.expires_after(config_.client_timeout);
    const auto [error, bytes] =
        co_await http::async_read_some(source_.stream, source_.buffer, source_.parser, kAwait);
    ahead_.resize(ahead_.size() - body.size);
    if (error && error != http::error::need_buffer) {
      NoteError(error);
      co_return false;
    }
  }
  co_return true;
}

asio::awaitable<boost::system::error_code> ClientRequest::ReadPiece(std::string& piece) {
  piece.resize(kPieceBytes);
  auto& body = source_.parser.get().body();
  body.data = piece.data();
  body.size = piece.size();
  if (!is_read()) {
    source_.stream.expires_after(config_.client_timeout);
    const auto [error, bytes] =
        co_await http::async_read_some(source_.stream, source_.buffer, source_.parser, kAwait);
    if (error && error != http::error::need_buffer) co_return error;
  }
  piece.resize(piece.size() - body.size);
  co_return boost::system::error_code();
}

void ClientRequest::NoteError(const boost::system::error_code& error) {
  if (error == http::error::body_limit) {
    failure_.Set(Cause::kClientBodyTooLarge, error.message());
    return;
  }
  const bool is_malformed =
      error.category() == make_error_code(http::error::bad_chunk).category() &&
      error != http::error::end_of_stream && error != http::error::partial_message;
  failure_.Set(is_malformed ? Cause::kClientBodyMalformed : Cause::kClientGone, error.message());
}

bool ClientRequest::has_body() const {
  return !is_read() || !ahead_.empty() || source_.parser.get().has_content_length();
}

std::optional<std::uint64_t> ClientRequest::length() const {
  const auto length = source_.parser.content_length();
  if (!length) return std::nullopt;
  return *length;
}

bool ClientRequest::IsIdempotent() const {
  const http::verb method = source_.parser.get().method();
  return method == http::verb::get || method == http::verb::head || method == http::verb::put ||
         method == http::verb::delete_ || method == http::verb::options;
}

std::string_view ClientRequest::method() const {
  return View(source_.parser.get().method_string());
}

}  // namespace torpor::server
