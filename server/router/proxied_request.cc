#include "server/router/proxied_request.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/beast/http/write.hpp>
#include <utility>

#include "server/log/structured_log.h"
#include "server/router/await.h"

namespace torpor::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

// Instances that a request is sent to at most.
constexpr int kMaxTries = 4;

}  // namespace

ProxiedRequest::ProxiedRequest(RouterCore& core, ClientRequest::Source client,
                               std::shared_ptr<const FunctionConfig> function,
                               const std::string& upstream_target, std::string request_id)
    : core_(core),
      kept_function_(std::move(function)),
      function_(*kept_function_),
      request_id_(std::move(request_id)),
      changed_(core.io),
      failure_([this] { OnFailure(); }),
      request_(std::move(client), core.config, core.spool, failure_),
      response_(core.config.response_buffer_bytes, !request_.is_head_request(),
                /*holds_end=*/function_.saves_requests()),
      lease_(core.io, core.desk, failure_),
      transfer_({.io = core.io,
                 .function = function_,
                 .request = request_,
                 .response = response_,
                 .lease = lease_,
                 .failure = failure_,
                 .changed = changed_},
                // Before any of the body is read: the parser adds trailers to the header's fields.
                request_.MakeUpstreamHead(upstream_target, request_id_), [this] {
                  // After the whole answer the client may close: there is nothing to cancel.
                  core_.hangups.Forget(watch_);
                  ReleaseLease();
                }) {
  core_.BeginRequest();
}

ProxiedRequest::~ProxiedRequest() {
  core_.hangups.Forget(watch_);
  ReleaseLease();
  core_.EndRequest();
}

asio::awaitable<bool> ProxiedRequest::Run() {
  if (const std::optional<Refusal> refusal = FindRefusal()) {
    failure_.Set(Cause::kRefused, refusal->reason);
    co_return co_await Refuse(*refusal);
  }
  // Before a GPU is asked for: a slow sender must not hold one.
  const bool is_body_here = co_await request_.ReadBody();
  if (is_body_here) {
    watch_ = core_.hangups.Watch(request_.stream().socket().native_handle(), [this] {
      failure_.Set(Cause::kClientGone, "the client closed the connection");
    });
    if (co_await Resolve()) co_await Forward();
  }
  bool keep_alive = false;
  if (!failure_) {
    if (response_.FitsWhole()) {
      keep_alive = co_await RespondAll();
    } else {
      keep_alive = co_await RespondPiecewise();
    }
  }
  if (failure_ && !failure_.IsClientAway() && !is_client_head_sent_) {
    // First the GPU and the room, then the client: it may be slow.
    co_await transfer_.End();
    ReleaseLease();
    request_.DropBody();
    co_return co_await Refuse(failure_.ToRefusal(function_, core_.config));
  }
  Record(response_.status());
  co_await transfer_.End();
  ReleaseLease();
  co_return (keep_alive && request_.is_read());
}

asio::awaitable<bool> ProxiedRequest::Resolve() {
  bool is_any_found = false;
  std::vector<std::string> failures;
  const std::vector<InstanceConfig> instances = InstancesOf(function_);
  for (const InstanceConfig& instance : instances) {
    const std::shared_ptr<UpstreamPool> pool = core_.upstreams.Find(instance.upstream);
    if (pool == nullptr) continue;
    const boost::system::error_code error = co_await pool->Resolve();
    is_any_found = is_any_found || !error;
    if (error) failures.push_back(fmt::format("{}: {}", instance.upstream, error.message()));
  }
  if (!is_any_found)
    failure_.Set(Cause::kUpstreamDown, fmt::format("{}", fmt::join(failures, "; ")));
  co_return !failure_;
}

asio::awaitable<void> ProxiedRequest::Forward() {
  // Not a temporary: g++ 12 destroys braced temporaries in co_await expressions twice.
  const TimePoint now = SteadyClock().Now();
  const RequestBroker::Demand demand{.function = function_.name,
                                     .id = request_id_,
                                     .give_up = now + core_.config.queue_timeout,
                                     .arrival = now};
  co_await lease_.Acquire(demand);
  for (int tries = 1; lease_.grant(); ++tries) {
    const std::string upstream = lease_.grant()->upstream;
    const std::shared_ptr<UpstreamPool> pool = core_.upstreams.Find(upstream);
    co_await transfer_.Forward(upstream, pool);
    const bool may_go_on =
        lease_.grant()->has_siblings && tries < kMaxTries && transfer_.MayGoElsewhere();
    if (!failure_ || !may_go_on) co_return;
    LogEvent(spdlog::level::warn, "an instance did not answer",
             {{"function", function_.name},
              {"instance", lease_.grant()->instance},
              {"request_id", request_id_},
              {"failure", failure_.detail()}});
    // Later failures are not this try's.
    failure_.Clear();
    co_await transfer_.End();
    if (failure_) co_return;
    co_await lease_.AskAgain();
  }
}

void ProxiedRequest::Abort() { failure_.Set(Cause::kAborted, "the router stops"); }

void ProxiedRequest::OnFailure() {
  transfer_.Interrupt();
  if (failure_.IsClientAway()) request_.stream().close();
  changed_.Notify();
  lease_.Wake();
}

void ProxiedRequest::ReleaseLease() {
  lease_.Release(failure_.EndingOf(response_.is_complete(), response_.IsServerError()));
}

std::optional<Refusal> ProxiedRequest::FindRefusal() const {
  if (core_.is_draining) {
    return Refusal{503, "draining", "this node is shutting down; send the request to another one",
                   kRetrySoonSeconds};
  }
  const std::vector<InstanceConfig> instances = InstancesOf(function_);
  const bool has_upstream = std::ranges::any_of(
      instances, [](const InstanceConfig& instance) { return !instance.upstream.empty(); });
  if (!has_upstream) {
    return Refusal{
        503, "no_upstream",
        fmt::format("function {} has no upstream; set it in the configuration", function_.name)};
  }
  return request_.FindRefusal();
}

void ProxiedRequest::AddTimings(std::vector<std::pair<std::string, std::string>>& fields) const {
  const std::optional<RequestGrant>& grant = lease_.grant();
  if (!grant) return;
  const TimePoint end = response_.EndOr(SteadyClock().Now());
  fields.emplace_back("X-Torpor-Gpu", std::to_string(grant->gpu.value));
  if (grant->has_siblings) fields.emplace_back("X-Torpor-Instance", grant->instance);
  fields.emplace_back("X-Torpor-Queue-Ms", FormatMilliseconds(grant->queue));
  fields.emplace_back("X-Torpor-Swap", NameOf(grant->source));
  fields.emplace_back("X-Torpor-Swap-Ms", FormatMilliseconds(grant->swap));
  fields.emplace_back("X-Torpor-Run-Ms", FormatMilliseconds(end - lease_.granted_at()));
}

void ProxiedRequest::PrepareClientHead(bool keep_alive) {
  ResponseBuffer::Head& head = response_.head();
  head.set("X-Request-Id", request_id_);
  std::vector<std::pair<std::string, std::string>> timings;
  AddTimings(timings);
  for (const auto& [name, value] : timings) head.set(name, value);
  if (!keep_alive) {
    head.set(http::field::connection, "close");
  } else if (request_.is_http_1_0()) {
    head.set(http::field::connection, "keep-alive");
  }
}

// The whole answer is here: one write.
asio::awaitable<bool> ProxiedRequest::RespondAll() {
  const bool keep_alive = MayKeepAlive();
  PrepareClientHead(keep_alive);
  ResponseBuffer::Head& head = response_.head();
  const unsigned status = response_.status();
  const bool has_body = response_.has_body() && status != 204 && status != 304;
  std::string body = response_.TakeBody();
  if (has_body) {
    head.content_length(body.size());
  } else if (response_.length() && status != 204) {
    head.content_length(*response_.length());
  }
  head.body().data = body.data();
  head.body().size = has_body ? body.size() : 0;
  head.body().more = false;
  http::response_serializer<http::buffer_body> serializer(head);
  is_client_head_sent_ = true;
  // How long the client takes is not the function's doing.
  Record(status);
  request_.stream().expires_after(core_.config.client_timeout);
  if (has_body) {
    const auto [error, bytes] = co_await http::async_write(request_.stream(), serializer, kAwait);
    if (error) failure_.Set(Cause::kClientGone, error.message());
  } else {
    const auto [error, bytes] =
        co_await http::async_write_header(request_.stream(), serializer, kAwait);
    if (error) failure_.Set(Cause::kClientGone, error.message());
  }
  co_return (keep_alive && !failure_);
}

// The answer passes through, at most response_buffer_bytes ahead of the client.
asio::awaitable<bool> ProxiedRequest::RespondPiecewise() {
  const bool keep_alive = MayKeepAlive() && (response_.length() || !request_.is_http_1_0());
  PrepareClientHead(keep_alive);
  ResponseBuffer::Head& head = response_.head();
  if (response_.length()) {
    head.content_length(*response_.length());
  } else if (!request_.is_http_1_0()) {
    head.chunked(true);
  }
  head.body().more = true;
  http::response_serializer<http::buffer_body> serializer(head);
  is_client_head_sent_ = true;
  request_.stream().expires_after(core_.config.client_timeout);
  const auto [head_error, head_bytes] =
      co_await http::async_write_header(request_.stream(), serializer, kAwait);
  if (head_error) failure_.Set(Cause::kClientGone, head_error.message());
  for (;;) {
    while (!response_.has_pieces() && !response_.is_complete() && !failure_) {
      co_await changed_.Wait();
    }
    // The client must notice that the answer is not whole: no last chunk, and the end.
    if (failure_) co_return false;
    const bool is_last = !response_.has_pieces();
    std::string piece;
    if (!is_last) {
      piece = response_.TakePiece();
      transfer_.OnPieceTaken();
    }
    head.body().data = is_last ? nullptr : piece.data();
    head.body().size = piece.size();
    head.body().more = !is_last;
    request_.stream().expires_after(core_.config.client_timeout);
    const auto [error, bytes] = co_await http::async_write(request_.stream(), serializer, kAwait);
    if (error && error != http::error::need_buffer) {
      failure_.Set(Cause::kClientGone, error.message());
      co_return false;
    }
    if (is_last) co_return keep_alive;
  }
}

asio::awaitable<bool> ProxiedRequest::Refuse(Refusal refusal) {
  Answer answer = ErrorAnswer(refusal, request_id_);
  answer.fields.emplace_back("X-Request-Id", request_id_);
  AddTimings(answer.fields);
  Record(refusal.status);
  AnswerFrame frame;
  frame.is_http_1_0 = request_.is_http_1_0();
  frame.is_head = request_.is_head_request();
  frame.keep_alive = MayKeepAlive();
  is_client_head_sent_ = true;
  const bool is_sent =
      co_await SendAnswer(request_.stream(), std::move(answer), frame, core_.config.client_timeout);
  co_return (is_sent && frame.keep_alive);
}

void ProxiedRequest::Record(unsigned status) {
  if (std::exchange(is_recorded_, true)) return;
  const TimePoint now = SteadyClock().Now();
  const std::optional<RequestGrant>& grant = lease_.grant();
  RequestRecord record;
  record.function = function_.name;
  record.outcome = failure_.OutcomeOf(status);
  record.duration = now - begin_;
  record.is_granted = grant.has_value();
  if (grant) {
    record.source = grant->source;
    record.queue = grant->queue;
    record.swap = grant->swap;
    record.run = response_.EndOr(now) - lease_.granted_at();
  }
  core_.parts.metrics->OnRequest(record);
  LogEvent(spdlog::level::info, "request",
           {{"function", function_.name},
            {"instance", grant && grant->has_siblings ? grant->instance : ""},
            {"request_id", request_id_},
            {"method", request_.method()},
            {"status", status},
            {"ms", ToMilliseconds(record.duration)},
            {"queue_ms", ToMilliseconds(record.queue)},
            {"swap_ms", ToMilliseconds(record.swap)},
            {"swap", grant ? NameOf(grant->source) : "none"},
            {"run_ms", ToMilliseconds(record.run)},
            {"gpu", grant ? grant->gpu.value : -1},
            {"failure", failure_.detail()}});
}

}  // namespace torpor::server
