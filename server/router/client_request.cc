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

ClientRequest::ClientRequest(Source source, const RouterConfig& config, BodySpool& spool,
                             RequestFailure& failure, Bytes min_bytes_per_second)
    : source_(std::move(source)),
      config_(config),
      failure_(failure),
      is_head_request_(source_.parser.get().method() == http::verb::head),
      patience_(config.client_timeout, min_bytes_per_second),
      body_(spool, config.request_buffer_bytes) {}

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

asio::awaitable<bool> ClientRequest::ReadBody() {
  if (is_read()) co_return true;
  const bool is_met = co_await MeetExpectation();
  if (!is_met) co_return false;
  while (!is_read()) {
    std::string piece;
    const bool has_come = co_await ReadPiece(piece);
    if (!has_come) co_return false;
    if (piece.empty()) continue;
    const absl::Status kept = co_await body_.Append(std::move(piece));
    if (!kept.ok()) failure_.Set(Cause::kNoRoomForBody, std::string(kept.message()));
    if (failure_) co_return false;
  }
  co_return true;
}

asio::awaitable<bool> ClientRequest::MeetExpectation() {
  if (source_.parser.get().count(http::field::expect) == 0) co_return true;
  source_.stream.expires_after(config_.client_timeout);
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  const auto [error, bytes] =
      co_await asio::async_write(source_.stream, asio::buffer(kContinue), kAwait);
  if (error) failure_.Set(Cause::kClientGone, error.message());
  co_return !error;
}

// Fills the piece, unless the body ends before: small pieces would cost the disk a write each.
asio::awaitable<bool> ClientRequest::ReadPiece(std::string& piece) {
  piece.resize(NextPieceBytes());
  auto& rest = source_.parser.get().body();
  rest.data = piece.data();
  rest.size = piece.size();
  while (!is_read() && rest.size > 0) {
    const Duration patience = patience_.Left(body_.size() + piece.size() - rest.size);
    if (patience == Duration::zero()) {
      failure_.Set(Cause::kClientGone, "the client sends the body too slowly");
      co_return false;
    }
    const TimePoint begin = SteadyClock().Now();
    source_.stream.expires_after(patience);
    const auto [error, bytes] =
        co_await http::async_read_some(source_.stream, source_.buffer, source_.parser, kAwait);
    patience_.Spend(SteadyClock().Now() - begin);
    if (error && error != http::error::need_buffer) {
      NoteError(error);
      co_return false;
    }
  }
  piece.resize(piece.size() - rest.size);
  co_return true;
}

std::size_t ClientRequest::NextPieceBytes() const {
  const std::uint64_t room = body_.NextPieceBytes();
  return std::clamp<std::uint64_t>(source_.parser.content_length_remaining().value_or(room), 1,
                                   room);
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
  return body_.size() > 0 || source_.parser.get().has_content_length();
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
