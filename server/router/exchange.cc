#include "server/router/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>
#include <utility>

#include "server/router/await.h"
#include "server/router/end_to_end_fields.h"
#include "server/router/header_rules.h"

// One request's life; its lease.
namespace torpor::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

}  // namespace

Exchange::Exchange(RouterCore& core, Client client, const FunctionConfig& function,
                   std::string upstream_target, std::string request_id)
    : core_(core),
      client_(std::move(client)),
      function_(function),
      upstream_target_(std::move(upstream_target)),
      request_id_(std::move(request_id)),
      changed_(core.io),
      room_(core.io) {
  core_.BeginRequest();
  PrepareUpstreamHead();
}

Exchange::~Exchange() {
  core_.hangups.Forget(watch_);
  ReleaseLease();
  core_.EndRequest();
}

// Before any of the body is read: the parser adds trailers to the header's fields.
void Exchange::PrepareUpstreamHead() {
  const auto& request = client_.parser.get();
  is_head_request_ = request.method() == http::verb::head;
  upstream_head_.method_string(request.method_string());
  upstream_head_.target(upstream_target_);
  upstream_head_.version(11);
  CopyEndToEnd(request, upstream_head_);
  upstream_head_.erase(http::field::expect);
  std::string forwarded_for;
  const auto earlier = request.equal_range("X-Forwarded-For");
  for (auto field = earlier.first; field != earlier.second; ++field) {
    forwarded_for += fmt::format("{}, ", View(field->value()));
  }
  upstream_head_.set("X-Forwarded-For", forwarded_for + client_.address);
  // A TLS terminator before us knows better.
  if (request.find("X-Forwarded-Proto") == request.end()) {
    upstream_head_.set("X-Forwarded-Proto", "http");
  }
  upstream_head_.set("X-Request-Id", request_id_);
}

asio::awaitable<bool> Exchange::Run() {
  if (const std::optional<Refusal> refusal = FindRefusal()) {
    Fail(Failure::kRefused, refusal->reason);
    co_return co_await Refuse(*refusal);
  }
  if (co_await ReadAhead()) {
    watch_ = core_.hangups.Watch(client_.stream.socket().native_handle(), [this] {
      Fail(Failure::kClientGone, "the client closed the connection");
    });
    if (co_await FindUpstream()) co_await WaitForGrant();
    if (grant_) co_await Forward();
  }
  bool keep_alive = false;
  if (failure_ == Failure::kNone) {
    if (FitsBuffer()) {
      keep_alive = co_await RespondAll();
    } else {
      keep_alive = co_await RespondPiecewise();
    }
  }
  const bool is_listening = failure_ != Failure::kClientGone && failure_ != Failure::kAborted;
  if (failure_ != Failure::kNone && is_listening && !is_client_head_sent_) {
    // First the GPU, then the client: it may be slow.
    co_await EndTransfer();
    ReleaseLease();
    co_return co_await Refuse(RefusalOfFailure());
  }
  Record(response_ ? response_->result_int() : 0);
  co_await EndTransfer();
  ReleaseLease();
  co_return (keep_alive && client_.parser.is_done());
}

void Exchange::Abort() { Fail(Failure::kAborted, "the router stops"); }

std::optional<Refusal> Exchange::FindRefusal() const {
  const auto& request = client_.parser.get();
  if (core_.is_draining) {
    return Refusal{503, "draining", "this node is shutting down; send the request to another one",
                   kRetrySoonSeconds};
  }
  if (function_.upstream.empty()) {
    return Refusal{
        503, "no_upstream",
        fmt::format("function {} has no upstream; set it in the configuration", function_.name)};
  }
  if (request.count(http::field::upgrade) > 0) {
    return Refusal{501, "upgrade",
                   "protocol upgrades (WebSocket, h2c) are not proxied; use HTTP/1.1"};
  }
  const std::string_view coding = View(request[http::field::transfer_encoding]);
  if (!coding.empty() && !EqualsIgnoringCase(coding, "chunked")) {
    return Refusal{501, "transfer_encoding", "the only transfer coding taken is chunked"};
  }
  const std::string_view expected = View(request[http::field::expect]);
  if (!expected.empty() && !EqualsIgnoringCase(expected, "100-continue")) {
    return Refusal{417, "expectation", "the only expectation met is 100-continue"};
  }
  return std::nullopt;
}

// Reads the body, or as much of it as is kept, before a GPU is asked for: a slow sender must not
// hold one.
asio::awaitable<bool> Exchange::ReadAhead() {
  if (client_.parser.is_done()) co_return true;
  if (client_.parser.get().count(http::field::expect) > 0) {
    client_.stream.expires_after(core_.config.router.client_timeout);
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    const auto [error, bytes] =
        co_await asio::async_write(client_.stream, asio::buffer(kContinue), kAwait);
    if (error) {
      Fail(Failure::kClientGone, error.message());
      co_return false;
    }
  }
  while (!client_.parser.is_done() && body_.size() < core_.config.router.request_buffer_bytes) {
    const std::size_t before = body_.size();
    body_.resize(
        std::min<std::size_t>(core_.config.router.request_buffer_bytes, before + kPieceBytes));
    auto& body = client_.parser.get().body();
    body.data = body_.data() + before;
    body.size = body_.size() - before;
    client_.stream.expires_after(core_.config.router.client_timeout);
    const auto [error, bytes] =
        co_await http::async_read_some(client_.stream, client_.buffer, client_.parser, kAwait);
    body_.resize(body_.size() - body.size);
    if (error && error != http::error::need_buffer) {
      FailClient(error);
      co_return false;
    }
  }
  co_return true;
}

asio::awaitable<bool> Exchange::FindUpstream() {
  if (const ErrorCode error = co_await core_.upstreams.at(function_.name).Resolve()) {
    Fail(Failure::kUpstreamDown, fmt::format("{}: {}", function_.upstream, error.message()));
  }
  co_return failure_ == Failure::kNone;
}

asio::awaitable<void> Exchange::WaitForGrant() {
  ticket_ = core_.desk.Ask({.function = function_.name,
                            .id = request_id_,
                            .give_up = SteadyClock().Now() + core_.config.router.queue_timeout},
                           *this);
  while (!grant_ && failure_ == Failure::kNone) co_await changed_.Wait();
}

void Exchange::OnGrant(absl::StatusOr<Grant> grant) {
  if (grant.ok()) {
    grant_ = *std::move(grant);
    granted_at_ = SteadyClock().Now();
  } else {
    not_granted_ = grant.status();
    Fail(Failure::kNotGranted, std::string(not_granted_.message()));
  }
  changed_.Notify();
}

void Exchange::OnLeaseLost(const absl::Status& status) {
  Fail(Failure::kLeaseLost, std::string(status.message()));
}

// A function may see that its GPU is gone before the controller does, and answer 5xx or die of it:
// then OnLeaseLost comes within this wait.
asio::awaitable<void> Exchange::ConfirmLease() {
  is_lease_confirmed_ = false;
  core_.desk.Confirm(*ticket_);
  while (!is_lease_confirmed_ && failure_ == Failure::kNone) co_await room_.Wait();
}

void Exchange::OnLeaseConfirmed() {
  is_lease_confirmed_ = true;
  room_.Notify();
}

void Exchange::ReleaseLease() {
  if (!ticket_) return;
  core_.desk.Release(*ticket_, EndingOf());
  ticket_.reset();
}

scheduler::Ending Exchange::EndingOf() const {
  switch (failure_) {
    case Failure::kUpstreamDown:
    case Failure::kUpstreamBroken:
    case Failure::kUpstreamTimeout:
      return scheduler::Ending::kFailed;
    case Failure::kLeaseLost:
      return scheduler::Ending::kLost;
    case Failure::kNone:
      if (!is_download_done_) break;
      return IsServerError() ? scheduler::Ending::kFailed : scheduler::Ending::kAnswered;
    // Its caller has gone or sends what nobody can answer; or there never was a lease.
    case Failure::kClientGone:
    case Failure::kClientBroken:
    case Failure::kAborted:
    case Failure::kRefused:
    case Failure::kNotGranted:
      break;
  }
  return scheduler::Ending::kCancelled;
}

void Exchange::Fail(Failure failure, std::string detail) {
  if (failure_ != Failure::kNone) return;
  failure_ = failure;
  failure_detail_ = std::move(detail);
  if (upstream_ != nullptr) upstream_->stream.close();
  if (failure == Failure::kClientGone || failure == Failure::kAborted) client_.stream.close();
  changed_.Notify();
  room_.Notify();
}

void Exchange::FailClient(const ErrorCode& error) {
  is_body_too_large_ = error == http::error::body_limit;
  const bool is_malformed =
      error.category() == make_error_code(http::error::bad_chunk).category() &&
      error != http::error::end_of_stream && error != http::error::partial_message;
  Fail(is_malformed ? Failure::kClientBroken : Failure::kClientGone, error.message());
}

}  // namespace torpor::server
