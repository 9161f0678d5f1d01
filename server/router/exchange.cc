#include "server/router/exchange.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <utility>

#include "server/log/structured_log.h"
#include "server/router/header_rules.h"

namespace torpor::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kPieceBytes = std::size_t{64} * 1024;
constexpr std::uint32_t kMaxUpstreamHeaderBytes = 256 * 1024;
constexpr int kRetrySoonSeconds = 1;

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

// Copies what may cross the proxy.
template <typename Fields>
void CopyEndToEnd(const Fields& from, http::fields& to) {
  std::vector<std::string_view> removed;
  for (const auto& field : from) {
    if (field.name() != http::field::connection) continue;
    for (const std::string_view item : ListItems(View(field.value()))) removed.push_back(item);
  }
  for (const auto& field : from) {
    const std::string_view name = View(field.name_string());
    const bool is_removed =
        ConnectionMayRemove(name) && std::ranges::any_of(removed, [&](std::string_view other) {
          return EqualsIgnoringCase(name, other);
        });
    if (!IsHopByHop(name) && !is_removed) {
      to.insert(field.name(), field.name_string(), field.value());
    }
  }
}

bool IsIdempotent(http::verb method) {
  return method == http::verb::get || method == http::verb::head || method == http::verb::put ||
         method == http::verb::delete_ || method == http::verb::options;
}

std::string Milliseconds(Duration duration) {
  return fmt::format("{:.3f}", ToMilliseconds(duration));
}

const char* NameOf(SwapSource source) {
  switch (source) {
    case SwapSource::kResident:
      return "resident";
    case SwapSource::kHost:
      return "host";
    case SwapSource::kPeer:
      return "peer";
  }
  return "unknown";
}

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
    co_await WaitForGrant();
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
  co_return keep_alive&& client_.parser.is_done();
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
    client_.stream.expires_after(core_.config.client_timeout);
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    const auto [error, bytes] =
        co_await asio::async_write(client_.stream, asio::buffer(kContinue), kAwait);
    if (error) {
      Fail(Failure::kClientGone, error.message());
      co_return false;
    }
  }
  while (!client_.parser.is_done() && body_.size() < core_.config.request_buffer_bytes) {
    const std::size_t before = body_.size();
    body_.resize(std::min<std::size_t>(core_.config.request_buffer_bytes, before + kPieceBytes));
    auto& body = client_.parser.get().body();
    body.data = body_.data() + before;
    body.size = body_.size() - before;
    client_.stream.expires_after(core_.config.client_timeout);
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

asio::awaitable<void> Exchange::WaitForGrant() {
  ticket_ = core_.desk.Ask(function_.name, SteadyClock().Now() + core_.config.queue_timeout, *this);
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

// Sends the request and returns once there is something to answer the client with.
asio::awaitable<void> Exchange::Forward() {
  for (;;) {
    if (!co_await OpenUpstream()) co_return;
    StartTransfer();
    const auto has_answer = [this] { return is_download_done_ || (response_ && !FitsBuffer()); };
    while (!has_answer() && failure_ == Failure::kNone) co_await changed_.Wait();
    if (failure_ != Failure::kUpstreamBroken || !MayTryAgain()) co_return;
    co_await EndTransfer();
    failure_ = Failure::kNone;
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
    if (exception) Fail(Failure::kUpstreamBroken, "out of memory");
    changed_.Notify();
  };
  asio::co_spawn(core_.io, Upload(), on_end);
  asio::co_spawn(core_.io, Download(), on_end);
}

// Upload and Download use this object: nothing ends before they have.
asio::awaitable<void> Exchange::EndTransfer() {
  if (transfers_ == 0) co_return;
  if (upstream_ != nullptr) upstream_->stream.close();
  room_.Notify();
  // An answer may come before the whole request was sent; then the client's rest is not read.
  client_.stream.cancel();
  while (transfers_ > 0) co_await changed_.Wait();
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
      client_.stream.expires_after(core_.config.client_timeout);
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
  if (IsServerError()) co_await WaitForLoss();
  if (failure_ == Failure::kNone) FinishDownload(*parser);
}

// A function sees that its GPU is gone before the controller does, and answers 5xx. Such an answer
// waits a moment for the controller's word, which makes it 502 lease_lost.
asio::awaitable<void> Exchange::WaitForLoss() {
  constexpr std::chrono::milliseconds kNoticeTime(100);
  const auto give_up = std::chrono::steady_clock::now() + kNoticeTime;
  while (failure_ == Failure::kNone && std::chrono::steady_clock::now() < give_up) {
    co_await room_.WaitUntil(give_up);
  }
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
      FailUpstream(error);
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
    while (buffered_bytes_ >= core_.config.response_buffer_bytes && failure_ == Failure::kNone) {
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
      FailUpstream(error);
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

bool Exchange::IsServerError() const { return response_ && response_->result_int() >= 500; }

bool Exchange::FitsBuffer() const {
  return is_head_request_ || is_download_done_ ||
         (IsServerError() && buffered_bytes_ < core_.config.response_buffer_bytes) ||
         (response_length_ && *response_length_ <= core_.config.response_buffer_bytes);
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
  client_.stream.expires_after(core_.config.client_timeout);
  if (has_body) {
    const auto [error, bytes] = co_await http::async_write(client_.stream, serializer, kAwait);
    if (error) Fail(Failure::kClientGone, error.message());
  } else {
    const auto [error, bytes] =
        co_await http::async_write_header(client_.stream, serializer, kAwait);
    if (error) Fail(Failure::kClientGone, error.message());
  }
  co_return keep_alive&& failure_ == Failure::kNone;
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
  client_.stream.expires_after(core_.config.client_timeout);
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
    client_.stream.expires_after(core_.config.client_timeout);
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
  const bool is_sent =
      co_await SendAnswer(client_.stream, std::move(answer), frame, core_.config.client_timeout);
  co_return is_sent&& frame.keep_alive;
}

Refusal Exchange::RefusalOfFailure() const {
  const std::string& name = function_.name;
  switch (failure_) {
    case Failure::kClientBroken:
      if (is_body_too_large_) {
        return {413, "body_too_large",
                fmt::format("the body is longer than max_body_bytes ({} bytes)",
                            core_.config.max_body_bytes)};
      }
      return {400, "malformed_body", fmt::format("the body is malformed: {}", failure_detail_)};
    case Failure::kNotGranted:
      if (absl::IsNotFound(not_granted_)) return {404, "unknown_function", failure_detail_};
      if (absl::IsDeadlineExceeded(not_granted_)) {
        return {504, "queue_timeout",
                fmt::format("function {} got no GPU within {} ms (queue_timeout): {}", name,
                            Milliseconds(core_.config.queue_timeout), failure_detail_)};
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

void Exchange::Fail(Failure failure, std::string detail) {
  if (failure_ != Failure::kNone) return;
  failure_ = failure;
  failure_detail_ = std::move(detail);
  if (upstream_ != nullptr) {
    upstream_->resolver.cancel();
    upstream_->stream.close();
  }
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

void Exchange::FailUpstream(const ErrorCode& error) {
  Fail(error == beast::error::timeout ? Failure::kUpstreamTimeout : Failure::kUpstreamBroken,
       error.message());
}

void Exchange::ReleaseLease() {
  if (!ticket_) return;
  core_.desk.Release(*ticket_);
  ticket_.reset();
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
