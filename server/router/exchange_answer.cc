#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/beast/http/write.hpp>
#include <utility>

#include "server/log/structured_log.h"
#include "server/router/await.h"
#include "server/router/end_to_end_fields.h"
#include "server/router/exchange.h"

// What the client is answered, and what is said of it in log and metrics.
namespace torpor::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

std::string Milliseconds(Duration duration) {
  return fmt::format("{:.3f}", ToMilliseconds(duration));
}

}  // namespace

bool Exchange::IsServerError() const { return response_ && response_->result_int() >= 500; }

bool Exchange::FitsBuffer() const {
  return is_head_request_ || is_download_done_ ||
         (IsServerError() && buffered_bytes_ < core_.config.router.response_buffer_bytes) ||
         (response_length_ && *response_length_ <= core_.config.router.response_buffer_bytes);
}

void Exchange::AddTimings(std::vector<std::pair<std::string, std::string>>& fields) const {
  if (!grant_) return;
  const TimePoint end = is_download_done_ ? upstream_end_ : SteadyClock().Now();
  fields.emplace_back("X-Torpor-Gpu", std::to_string(grant_->gpu.value));
  fields.emplace_back("X-Torpor-Queue-Ms", Milliseconds(grant_->queue));
  fields.emplace_back("X-Torpor-Swap", NameOf(grant_->source));
  fields.emplace_back("X-Torpor-Swap-Ms", Milliseconds(grant_->swap));
  fields.emplace_back("X-Torpor-Run-Ms", Milliseconds(end - granted_at_));
}

void Exchange::PrepareClientHead(bool keep_alive) {
  response_->set("X-Request-Id", request_id_);
  std::vector<std::pair<std::string, std::string>> timings;
  AddTimings(timings);
  for (const auto& [name, value] : timings) response_->set(name, value);
  if (!keep_alive) {
    response_->set(http::field::connection, "close");
  } else if (client_.parser.get().version() == 10) {
    response_->set(http::field::connection, "keep-alive");
  }
}

bool Exchange::ClientWantsKeepAlive() const {
  return client_.parser.get().keep_alive() && client_.parser.is_done() && !core_.is_draining;
}

// The whole answer is here: one write.
asio::awaitable<bool> Exchange::RespondAll() {
  const bool keep_alive = ClientWantsKeepAlive();
  PrepareClientHead(keep_alive);
  const unsigned status = response_->result_int();
  const bool has_body = !is_head_request_ && status != 204 && status != 304;
  std::string body;
  for (const std::string& piece : pieces_) body += piece;
  if (has_body) {
    response_->content_length(body.size());
  } else if (response_length_ && status != 204) {
    response_->content_length(*response_length_);
  }
  response_->body().data = body.data();
  response_->body().size = has_body ? body.size() : 0;
  response_->body().more = false;
  http::response_serializer<http::buffer_body> serializer(*response_);
  is_client_head_sent_ = true;
  // How long the client takes is not the function's doing.
  Record(status);
  client_.stream.expires_after(core_.config.router.client_timeout);
  if (has_body) {
    const auto [error, bytes] = co_await http::async_write(client_.stream, serializer, kAwait);
    if (error) Fail(Failure::kClientGone, error.message());
  } else {
    const auto [error, bytes] =
        co_await http::async_write_header(client_.stream, serializer, kAwait);
    if (error) Fail(Failure::kClientGone, error.message());
  }
  co_return (keep_alive && failure_ == Failure::kNone);
}

// The answer passes through, at most response_buffer_bytes ahead of the client.
asio::awaitable<bool> Exchange::RespondPiecewise() {
  const bool is_http_1_0 = client_.parser.get().version() == 10;
  const bool keep_alive = ClientWantsKeepAlive() && (response_length_ || !is_http_1_0);
  PrepareClientHead(keep_alive);
  if (response_length_) {
    response_->content_length(*response_length_);
  } else if (!is_http_1_0) {
    response_->chunked(true);
  }
  response_->body().more = true;
  http::response_serializer<http::buffer_body> serializer(*response_);
  is_client_head_sent_ = true;
  client_.stream.expires_after(core_.config.router.client_timeout);
  const auto [head_error, head_bytes] =
      co_await http::async_write_header(client_.stream, serializer, kAwait);
  if (head_error) Fail(Failure::kClientGone, head_error.message());
  for (;;) {
    while (pieces_.empty() && !is_download_done_ && failure_ == Failure::kNone) {
      co_await changed_.Wait();
    }
    // The client must notice that the answer is not whole: no last chunk, and the end.
    if (failure_ != Failure::kNone) co_return false;
    const bool is_last = pieces_.empty();
    std::string piece;
    if (!is_last) {
      piece = std::move(pieces_.front());
      pieces_.pop_front();
      buffered_bytes_ -= piece.size();
      room_.Notify();
    }
    response_->body().data = is_last ? nullptr : piece.data();
    response_->body().size = piece.size();
    response_->body().more = !is_last;
    client_.stream.expires_after(core_.config.router.client_timeout);
    const auto [error, bytes] = co_await http::async_write(client_.stream, serializer, kAwait);
    if (error && error != http::error::need_buffer) {
      Fail(Failure::kClientGone, error.message());
      co_return false;
    }
    if (is_last) co_return keep_alive;
  }
}

asio::awaitable<bool> Exchange::Refuse(Refusal refusal) {
  Answer answer = ErrorAnswer(refusal, request_id_);
  answer.fields.emplace_back("X-Request-Id", request_id_);
  AddTimings(answer.fields);
  Record(refusal.status);
  AnswerFrame frame;
  frame.is_http_1_0 = client_.parser.get().version() == 10;
  frame.is_head = is_head_request_;
  frame.keep_alive = ClientWantsKeepAlive();
  is_client_head_sent_ = true;
  const bool is_sent = co_await SendAnswer(client_.stream, std::move(answer), frame,
                                           core_.config.router.client_timeout);
  co_return (is_sent && frame.keep_alive);
}

Refusal Exchange::RefusalOfFailure() const {
  const std::string& name = function_.name;
  switch (failure_) {
    case Failure::kClientBroken:
      if (is_body_too_large_) {
        return {413, "body_too_large",
                fmt::format("the body is longer than max_body_bytes ({} bytes)",
                            core_.config.router.max_body_bytes)};
      }
      return {400, "malformed_body", fmt::format("the body is malformed: {}", failure_detail_)};
    case Failure::kNotGranted:
      if (absl::IsNotFound(not_granted_)) return {404, "unknown_function", failure_detail_};
      if (absl::IsDeadlineExceeded(not_granted_)) {
        return {504, "queue_timeout",
                fmt::format("function {} got no GPU within {} ms (queue_timeout): {}", name,
                            Milliseconds(core_.config.router.queue_timeout), failure_detail_)};
      }
      if (absl::IsResourceExhausted(not_granted_)) {
        return {429, "queue_full",
                fmt::format("function {} takes no more requests now: {}", name, failure_detail_),
                kRetrySoonSeconds};
      }
      // Nobody waits for its answer any more.
      if (absl::IsOutOfRange(not_granted_)) {
        return {504, "too_late",
                fmt::format("function {} was not asked: {}", name, failure_detail_)};
      }
      return {503, "unavailable",
              fmt::format("function {} cannot run now: {}", name, failure_detail_),
              kRetrySoonSeconds};
    case Failure::kLeaseLost:
      return {502, "lease_lost",
              fmt::format("function {} lost its GPU while it ran: {}; send the request again if it "
                          "may run twice",
                          name, failure_detail_)};
    case Failure::kUpstreamDown:
      return {
          503, "upstream_down",
          fmt::format("the server of function {} does not take connections ({}); is it running?",
                      name, failure_detail_),
          kRetrySoonSeconds};
    case Failure::kUpstreamTimeout:
      return {504, "upstream_timeout",
              fmt::format("function {} did not answer within {} ms (upstream_timeout)", name,
                          Milliseconds(function_.upstream_timeout))};
    default:
      return {
          502, "upstream_broken",
          fmt::format("the server of function {} broke its answer off: {}", name, failure_detail_)};
  }
}

RequestOutcome Exchange::OutcomeOf(unsigned status) const {
  switch (failure_) {
    case Failure::kNone:
      return status >= 500 ? RequestOutcome::kUpstreamError : RequestOutcome::kOk;
    case Failure::kClientGone:
    case Failure::kAborted:
      return RequestOutcome::kCancelled;
    case Failure::kNotGranted:
      return absl::IsDeadlineExceeded(not_granted_) ? RequestOutcome::kTimeout
                                                    : RequestOutcome::kRejected;
    case Failure::kRefused:
    case Failure::kClientBroken:
      return RequestOutcome::kRejected;
    case Failure::kUpstreamTimeout:
      return RequestOutcome::kTimeout;
    case Failure::kUpstreamDown:
      return RequestOutcome::kUpstreamError;
    case Failure::kLeaseLost:
    case Failure::kUpstreamBroken:
      return RequestOutcome::kLost;
  }
  return RequestOutcome::kOk;
}

void Exchange::Record(unsigned status) {
  if (std::exchange(is_recorded_, true)) return;
  const TimePoint now = SteadyClock().Now();
  RequestRecord record;
  record.function = function_.name;
  record.outcome = OutcomeOf(status);
  record.duration = now - begin_;
  record.is_granted = grant_.has_value();
  if (grant_) {
    record.source = grant_->source;
    record.queue = grant_->queue;
    record.swap = grant_->swap;
    record.run = (is_download_done_ ? upstream_end_ : now) - granted_at_;
  }
  core_.parts.metrics->OnRequest(record);
  LogEvent(spdlog::level::info, "request",
           {{"function", function_.name},
            {"request_id", request_id_},
            {"method", View(upstream_head_.method_string())},
            {"status", status},
            {"ms", ToMilliseconds(record.duration)},
            {"queue_ms", ToMilliseconds(record.queue)},
            {"swap_ms", ToMilliseconds(record.swap)},
            {"swap", grant_ ? NameOf(grant_->source) : "none"},
            {"run_ms", ToMilliseconds(record.run)},
            {"gpu", grant_ ? grant_->gpu.value : -1},
            {"failure", failure_detail_}});
}

}  // namespace torpor::server
