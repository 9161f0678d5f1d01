#include "server/router/client_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/read.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>
#include <vector>

#include "server/router/await.h"
#include "server/router/end_to_end_fields.h"
#include "server/router/header_rules.h"
#include "server/router/proxied_request.h"
#include "server/router/request_path.h"

namespace torpor::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr std::size_t kReadBytes = std::size_t{16} * 1024;

std::string NewRequestId() {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  return fmt::format("{:016x}{:016x}", random(), random());
}

// Formats the address as in X-Forwarded-For.
std::string AddressOf(boost::beast::tcp_stream& stream) {
  boost::system::error_code error;
  const auto endpoint = stream.socket().remote_endpoint(error);
  return error ? "unknown" : endpoint.address().to_string();
}

Answer TextAnswer(unsigned status, std::string content_type, std::string body) {
  Answer answer;
  answer.status = status;
  answer.content_type = std::move(content_type);
  answer.body = std::move(body);
  return answer;
}

// `name` is empty for the node.
Answer ReadyAnswer(const Readiness& readiness, std::string_view name) {
  nlohmann::ordered_json body;
  if (!name.empty()) body["name"] = name;
  body["ready"] = readiness.is_ready;
  if (!readiness.is_ready) body["reason"] = readiness.reason;
  Answer answer =
      TextAnswer(readiness.is_ready ? 200 : 503, "application/json", body.dump() + "\n");
  if (!readiness.is_ready) answer.fields.emplace_back("Retry-After", "1");
  return answer;
}

// A blank in Host is, as a rule, a field that was folded into it.
bool HasSoundHost(const ClientRequest::Head::header_type& head) {
  const std::size_t hosts = head.count(http::field::host);
  if (hosts == 0) return head.version() < 11;
  return hosts == 1 && View(head[http::field::host]).find_first_of(" \t") == std::string_view::npos;
}

}  // namespace

// A request after its header was read.
struct ClientConnection::Request {
  explicit Request(ClientRequest::Parser& request_parser) : parser(request_parser) {
    const std::string_view given = View(parser.get()["X-Request-Id"]);
    id = IsRequestId(given) ? std::string(given) : NewRequestId();
    path = ParseRequestPath(View(parser.get().target()));
  }

  bool IsRead() const {
    const http::verb method = parser.get().method();
    return method == http::verb::get || method == http::verb::head;
  }

  ClientRequest::Parser& parser;
  std::string id;
  RequestPath path;
};

ClientConnection::ClientConnection(RouterCore& core, asio::ip::tcp::socket socket,
                                   ListenerRole role)
    : core_(core), stream_(std::move(socket)), role_(role) {
  core_.connections.insert(this);
  core_.parts.metrics->OnConnections(static_cast<int>(core_.connections.size()));
  boost::system::error_code ignored;
  stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
}

ClientConnection::~ClientConnection() {
  core_.connections.erase(this);
  core_.parts.metrics->OnConnections(static_cast<int>(core_.connections.size()));
}

asio::awaitable<void> ClientConnection::Serve() {
  const auto self = shared_from_this();
  while (co_await WaitForBytes()) {
    if (!co_await ServeOne()) break;
  }
  co_await CloseGently();
}

void ClientConnection::CloseIfIdle() {
  if (is_idle_) stream_.close();
}

void ClientConnection::Abort() {
  if (abort_proxied_) abort_proxied_();
  stream_.close();
}

// Waits for the next request's first bytes; an idle connection has more time than a header.
asio::awaitable<bool> ClientConnection::WaitForBytes() {
  if (buffer_.size() > 0) co_return true;
  if (core_.is_draining && has_served_) co_return false;
  is_idle_ = true;
  stream_.expires_after(core_.config.idle_timeout);
  const auto [error, bytes] = co_await stream_.async_read_some(buffer_.prepare(kReadBytes), kAwait);
  is_idle_ = false;
  buffer_.commit(bytes);
  co_return !error;
}

asio::awaitable<bool> ClientConnection::ServeOne() {
  has_served_ = true;
  ClientRequest::Parser parser;
  parser.header_limit(static_cast<std::uint32_t>(core_.config.max_header_bytes));
  if (core_.config.max_body_bytes == 0) {
    parser.body_limit(boost::none);
  } else {
    parser.body_limit(core_.config.max_body_bytes);
  }
  stream_.expires_after(core_.config.header_timeout);
  const auto [error, bytes] = co_await http::async_read_header(stream_, buffer_, parser, kAwait);
  if (error) co_return co_await AnswerBrokenHeader(error);
  Request request(parser);
  if (!HasSoundHost(parser.get().base())) {
    const Refusal refusal{400, "host", "send exactly one Host field, without blanks", 0};
    co_return co_await SendOwn(request, ErrorAnswer(refusal, request.id), /*may_keep=*/false);
  }
  if (role_ == ListenerRole::kRequests && request.path.kind == RequestPath::Kind::kFunction) {
    co_return co_await Proxy(request);
  }
  co_return co_await SendOwn(request, co_await OwnAnswer(request));
}

asio::awaitable<bool> ClientConnection::AnswerBrokenHeader(const boost::system::error_code& error) {
  // For other errors than HTTP's, the client has closed or was too slow.
  if (error.category() != make_error_code(http::error::bad_method).category()) co_return false;
  if (error == http::error::end_of_stream || error == http::error::partial_message) co_return false;
  Refusal refusal{400, "malformed", fmt::format("this is not HTTP/1.1: {}", error.message()), 0};
  if (error == http::error::header_limit) {
    refusal = {431, "header_too_large",
               fmt::format("the header is longer than max_header_bytes ({} bytes)",
                           core_.config.max_header_bytes),
               0};
  } else if (error == http::error::body_limit) {
    refusal = {413, "body_too_large",
               fmt::format("the body is longer than max_body_bytes ({} bytes)",
                           core_.config.max_body_bytes),
               0};
  }
  AnswerFrame frame;
  frame.keep_alive = false;
  co_await SendAnswer(stream_, ErrorAnswer(refusal, NewRequestId()), frame,
                      core_.config.client_timeout);
  co_return false;
}

asio::awaitable<bool> ClientConnection::Proxy(Request& request) {
  const auto function = core_.FindFunction(request.path.function);
  if (function == nullptr) {
    core_.parts.metrics->OnUnknownFunction();
    const Refusal refusal{404, "unknown_function",
                          "there is no such function; `torporctl functions` lists them", 0};
    co_return co_await SendOwn(request, ErrorAnswer(refusal, request.id));
  }
  ProxiedRequest proxied(core_, {stream_, buffer_, request.parser, AddressOf(stream_)}, function,
                         request.path.upstream_target, request.id);
  abort_proxied_ = [&proxied] { proxied.Abort(); };
  const bool keep_alive = co_await proxied.Run();
  abort_proxied_ = nullptr;
  co_return keep_alive;
}

asio::awaitable<Answer> ClientConnection::OwnAnswer(const Request& request) {
  using Kind = RequestPath::Kind;
  const Refusal unknown{404, "unknown_path",
                        "there is nothing here; functions are under /function/NAME/", 0};
  const Kind kind = request.path.kind;
  const bool is_served = kind == Kind::kMetrics ? role_ == ListenerRole::kMetrics
                                                : kind != Kind::kUnknown && kind != Kind::kFunction;
  if (!is_served) co_return ErrorAnswer(unknown, request.id);
  if (!request.IsRead()) {
    Answer answer = ErrorAnswer({405, "method", "use GET", 0}, request.id);
    answer.fields.emplace_back("Allow", "GET, HEAD");
    co_return answer;
  }
  switch (kind) {
    case Kind::kMetrics:
      co_return co_await MetricsAnswer();
    case Kind::kLive:
      co_return TextAnswer(200, "application/json", "{\"live\":true}\n");
    case Kind::kReady: {
      const Readiness readiness = co_await AskReadiness("");
      co_return ReadyAnswer(readiness, "");
    }
    case Kind::kFunctionReady:
      co_return co_await FunctionReadyAnswer(request);
    default:
      co_return ErrorAnswer(unknown, request.id);
  }
}

asio::awaitable<Answer> ClientConnection::MetricsAnswer() {
  std::string text = co_await core_.inquiries.AskMetrics(*core_.parts.metrics);
  co_return TextAnswer(200, "text/plain; version=0.0.4; charset=utf-8", std::move(text));
}

asio::awaitable<Readiness> ClientConnection::AskReadiness(const std::string& function) {
  Readiness readiness;
  if (core_.is_draining) {
    readiness.reason = "the router is shutting down";
  } else {
    readiness = co_await core_.inquiries.AskReadiness(function);
  }
  co_return readiness;
}

asio::awaitable<Answer> ClientConnection::FunctionReadyAnswer(const Request& request) {
  const auto function = core_.FindFunction(request.path.function);
  if (function == nullptr) {
    co_return ErrorAnswer({404, "unknown_function", "there is no such function", 0}, request.id);
  }
  Readiness readiness = co_await AskReadiness(function->name);
  if (readiness.is_ready && !co_await IsAnyListening(readiness.upstreams)) {
    readiness = {.reason = "the function's server takes no connections"};
  }
  co_return ReadyAnswer(readiness, function->name);
}

asio::awaitable<bool> ClientConnection::IsAnyListening(const std::vector<std::string>& upstreams) {
  for (const std::string& address : upstreams) {
    const std::shared_ptr<UpstreamPool> pool = core_.upstreams.Find(address);
    if (pool != nullptr && co_await pool->IsListening()) co_return true;
  }
  co_return false;
}

asio::awaitable<bool> ClientConnection::SendOwn(const Request& request, Answer answer,
                                                bool may_keep) {
  answer.fields.emplace_back("X-Request-Id", request.id);
  AnswerFrame frame;
  frame.is_http_1_0 = request.parser.get().version() == 10;
  frame.is_head = request.parser.get().method() == http::verb::head;
  // An unread body would be parsed as the next request.
  frame.keep_alive = may_keep && request.parser.get().keep_alive() && request.parser.is_done() &&
                     ClientRequest::SaysWhereItEnds(request.parser.get().base()) &&
                     !core_.is_draining;
  const bool is_sent =
      co_await SendAnswer(stream_, std::move(answer), frame, core_.config.client_timeout);
  co_return (is_sent && frame.keep_alive);
}

// Closing a socket with unread bytes resets the connection, and a reset may overtake the answer:
// shut down the sending side, then read a little.
asio::awaitable<void> ClientConnection::CloseGently() {
  constexpr std::chrono::seconds kPatience(1);
  constexpr std::size_t kMaxBytes = 1 << 20;
  boost::system::error_code error;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, error);
  if (error) co_return;
  stream_.expires_after(kPatience);
  std::size_t total = 0;
  while (total < kMaxBytes) {
    buffer_.clear();
    const auto [read_error, bytes] =
        co_await stream_.async_read_some(buffer_.prepare(kReadBytes), kAwait);
    if (read_error) co_return;
    total += bytes;
  }
}

}  // namespace torpor::server
