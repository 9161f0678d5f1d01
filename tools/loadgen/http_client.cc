#include "tools/loadgen/http_client.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

namespace torpor::loadgen {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

constexpr std::uint64_t kMaxAnswerBytes = 64 << 20;

// Lower-case ASCII, for names of header fields.
std::string Lower(beast::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// A connection, for a request at a time.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // Called with the connection after an exchange. A `reusable` connection can take another request.
  using OnDone = std::function<void(const std::shared_ptr<Connection>&, bool reusable, HttpAnswer)>;

  explicit Connection(asio::io_context& loop) : resolver_(loop), stream_(loop) {}

  // Whether a request was started, and whether any byte of the last answer has come.
  bool used() const { return used_; }
  bool received() const { return received_; }

  // Sends `request` to `host` (HOST:PORT), connecting first if the connection is new, and calls
  // `on_done` once: with the answer, or with an error at `give_up` at the latest. The connection
  // keeps itself alive until then.
  void Start(const std::string& host, http::request<http::string_body> request, TimePoint give_up,
             OnDone on_done) {
    request_ = std::move(request);
    on_done_ = std::move(on_done);
    received_ = false;
    stream_.expires_at(std::chrono::time_point_cast<std::chrono::steady_clock::duration>(give_up));
    if (std::exchange(used_, true)) return Write();
    const std::size_t colon = host.rfind(':');
    resolver_.async_resolve(
        host.substr(0, colon), host.substr(colon + 1),
        [self = shared_from_this()](error_code error, const auto& endpoints) {
          if (error) return self->Fail(error);
          self->stream_.async_connect(endpoints, [self](error_code connect_error, const auto&) {
            if (connect_error) return self->Fail(connect_error);
            error_code ignored;
            self->stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
            self->Write();
          });
        });
  }

 private:
  void Write() {
    http::async_write(stream_, request_,
                      [self = shared_from_this()](error_code error, std::size_t) {
                        if (error) return self->Fail(error);
                        self->Read();
                      });
  }

  void Read() {
    parser_.emplace();
    parser_->body_limit(kMaxAnswerBytes);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](error_code error, std::size_t) {
                       self->received_ = self->parser_->got_some();
                       if (error) return self->Fail(error);
                       self->Finish();
                     });
  }

  void Finish() {
    auto response = parser_->release();
    HttpAnswer answer;
    answer.http_status = static_cast<int>(response.result_int());
    for (const auto& field : response) {
      answer.headers.emplace(Lower(field.name_string()), std::string(field.value()));
    }
    answer.body = std::move(response.body());
    // An idle connection has no deadline.
    stream_.expires_never();
    Done(response.keep_alive(), std::move(answer));
  }

  // Ends the exchange with DeadlineExceeded for a time-out, else with Unavailable.
  void Fail(error_code error) {
    HttpAnswer answer;
    answer.status = error == beast::error::timeout
                        ? absl::DeadlineExceededError("no answer in time")
                        : absl::UnavailableError(error.message());
    Done(false, std::move(answer));
  }

  void Done(bool reusable, HttpAnswer answer) {
    std::exchange(on_done_, nullptr)(shared_from_this(), reusable, std::move(answer));
  }

  asio::ip::tcp::resolver resolver_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  std::optional<http::response_parser<http::string_body>> parser_;
  OnDone on_done_;
  bool used_ = false;
  bool received_ = false;
};

}  // namespace

// Keeps idle connections by host and opens new connections on demand. Runs on the thread of
// HttpClient::Run only.
class HttpClient::Impl {
 public:
  explicit Impl(std::size_t max_connections) : max_connections_(max_connections) {}

  void Post(const std::string& host, const std::string& path, const std::string& body,
            TimePoint give_up, OnAnswer on_answer) {
    http::request<http::string_body> request(http::verb::post, path, 11);
    request.set(http::field::host, host);
    request.set(http::field::content_type, "application/json");
    request.body() = body;
    request.prepare_payload();
    Send(host, std::move(request), give_up, std::move(on_answer));
  }

  asio::io_context& loop() { return loop_; }

 private:
  // Sends on an idle or a new connection. Repeats the request if the server has closed an idle
  // connection before the first byte of an answer.
  void Send(const std::string& host, http::request<http::string_body> request, TimePoint give_up,
            OnAnswer on_answer) {
    const std::shared_ptr<Connection> connection = Take(host);
    ++under_way_;
    const bool reused = connection->used();
    auto again = reused ? request : http::request<http::string_body>();
    connection->Start(
        host, std::move(request), give_up,
        [this, host, give_up, reused, again = std::move(again), on_answer = std::move(on_answer)](
            const std::shared_ptr<Connection>& done, bool reusable, HttpAnswer answer) mutable {
          --under_way_;
          if (reusable) PutBack(host, done);
          // The server had closed the idle connection: no failure, so try once more.
          const bool stale =
              reused && !done->received() && answer.status.code() == absl::StatusCode::kUnavailable;
          if (!stale) return on_answer(std::move(answer));
          Forget(host);
          Send(host, std::move(again), give_up, std::move(on_answer));
        });
  }

  // Returns an idle connection to the host, or opens a connection, closing another host's idle
  // connection at the limit.
  std::shared_ptr<Connection> Take(const std::string& host) {
    const auto idle = idle_.find(host);
    if (idle != idle_.end()) return TakeFrom(idle);
    if (max_connections_ > 0 && under_way_ + idle_count_ >= max_connections_ && !idle_.empty()) {
      TakeFrom(idle_.begin());
    }
    return std::make_shared<Connection>(loop_);
  }

  using Idle = std::map<std::string, std::vector<std::shared_ptr<Connection>>>;

  // Removes a connection from `idle`, and an empty entry with the last connection.
  std::shared_ptr<Connection> TakeFrom(Idle::iterator idle) {
    std::shared_ptr<Connection> connection = std::move(idle->second.back());
    idle->second.pop_back();
    if (idle->second.empty()) idle_.erase(idle);
    --idle_count_;
    return connection;
  }

  // Keeps a connection for another request to the host.
  void PutBack(const std::string& host, const std::shared_ptr<Connection>& connection) {
    idle_[host].push_back(connection);
    ++idle_count_;
  }

  // Closes the host's idle connections: the server has probably closed all of them.
  void Forget(const std::string& host) {
    const auto idle = idle_.find(host);
    if (idle == idle_.end()) return;
    idle_count_ -= idle->second.size();
    idle_.erase(idle);
  }

  const std::size_t max_connections_;
  asio::io_context loop_{1};
  Idle idle_;  // by host; no empty entries
  std::size_t idle_count_ = 0;
  std::size_t under_way_ = 0;
};

HttpClient::HttpClient(std::size_t max_connections)
    : impl_(std::make_unique<Impl>(max_connections)) {}
HttpClient::~HttpClient() = default;

void HttpClient::Post(const std::string& host, const std::string& path, const std::string& body,
                      TimePoint give_up, OnAnswer on_answer) {
  impl_->Post(host, path, body, give_up, std::move(on_answer));
}

void HttpClient::CallAt(TimePoint when, std::function<void()> function) {
  auto timer = std::make_shared<asio::steady_timer>(
      impl_->loop(), std::chrono::time_point_cast<std::chrono::steady_clock::duration>(when));
  timer->async_wait([timer, function = std::move(function)](error_code) { function(); });
}

void HttpClient::Run() { impl_->loop().run(); }

void HttpClient::Stop() { impl_->loop().stop(); }

}  // namespace torpor::loadgen
