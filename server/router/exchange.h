#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/router/answer.h"
#include "server/router/event.h"
#include "server/router/router_core.h"

namespace torpor::server {

// One request on its way to a function's server and back. Three coroutines share it: Run, which
// writes to the client; Upload, from client to upstream; Download, from upstream into a bounded
// buffer. The lease is held from the grant until Download has the whole answer.
class Exchange final : private LeaseDesk::Listener {
 public:
  using Parser = boost::beast::http::request_parser<boost::beast::http::buffer_body>;

  // The client's side. `parser` has read the header and nothing of the body.
  struct Client {
    boost::beast::tcp_stream& stream;
    boost::beast::flat_buffer& buffer;
    Parser& parser;
    std::string address;
  };

  Exchange(RouterCore& core, Client client, const FunctionConfig& function,
           std::string upstream_target, std::string request_id);
  ~Exchange() override;

  // Whether the client's connection can serve another request.
  boost::asio::awaitable<bool> Run();

  // Gives up now; Run then returns false.
  void Abort();

 private:
  // Why the exchange cannot go on as it should; the first cause counts.
  enum class Failure {
    kNone,
    kRefused,
    kClientGone,
    kClientBroken,  // its body is malformed or too large
    kNotGranted,
    kLeaseLost,
    kUpstreamDown,
    kUpstreamBroken,
    kUpstreamTimeout,
    kAborted,
  };
  template <typename T>
  using Awaitable = boost::asio::awaitable<T>;
  using ErrorCode = boost::system::error_code;
  using RequestHead = boost::beast::http::request<boost::beast::http::buffer_body>;
  using ResponseHead = boost::beast::http::response<boost::beast::http::buffer_body>;
  using ResponseParser = boost::beast::http::response_parser<boost::beast::http::buffer_body>;

  static constexpr std::size_t kPieceBytes = std::size_t{64} * 1024;  // read at one time

  void OnGrant(absl::StatusOr<Grant> grant) override;
  void OnLeaseLost(const absl::Status& status) override;
  void OnLeaseConfirmed() override;

  // exchange.cc: the request's life and its lease.
  void PrepareUpstreamHead();
  std::optional<Refusal> FindRefusal() const;
  Awaitable<bool> ReadAhead();
  Awaitable<bool> FindUpstream();
  Awaitable<void> WaitForGrant();
  Awaitable<void> ConfirmLease();
  void ReleaseLease();
  scheduler::Ending EndingOf() const;
  void Fail(Failure failure, std::string detail);
  void FailClient(const ErrorCode& error);

  // exchange_transfer.cc: between the router and the function's server.
  Awaitable<void> Forward();
  Awaitable<bool> OpenUpstream();
  void StartTransfer();
  Awaitable<void> EndTransfer();
  bool MayTryAgain() const;
  Awaitable<void> Upload();
  Awaitable<bool> UploadPieces();
  Awaitable<void> Download();
  Awaitable<bool> ReadResponseHead(std::optional<ResponseParser>& parser);
  Awaitable<bool> ReadResponseBody(ResponseParser& parser);
  void FinishDownload(const ResponseParser& parser);
  Awaitable<void> FailUpstream(ErrorCode error);

  // exchange_answer.cc: what the client is answered.
  Awaitable<bool> RespondAll();
  Awaitable<bool> RespondPiecewise();
  Awaitable<bool> Refuse(Refusal refusal);
  void PrepareClientHead(bool keep_alive);
  void AddTimings(std::vector<std::pair<std::string, std::string>>& fields) const;
  Refusal RefusalOfFailure() const;
  bool IsServerError() const;
  bool FitsBuffer() const;
  RequestOutcome OutcomeOf(unsigned status) const;
  void Record(unsigned status);  // in the log and the metrics; the first call counts
  bool ClientWantsKeepAlive() const;

  RouterCore& core_;
  Client client_;
  const FunctionConfig& function_;
  const std::string upstream_target_;
  const std::string request_id_;
  const TimePoint begin_ = SteadyClock().Now();

  Event changed_;  // for Run
  Event room_;     // for Download
  Failure failure_ = Failure::kNone;
  std::string failure_detail_;
  bool is_body_too_large_ = false;
  absl::Status not_granted_;
  int transfers_ = 0;  // of Upload and Download, those that run

  RequestHead upstream_head_;
  bool is_head_request_ = false;
  std::string body_;  // what was read ahead
  HangupWatcher::WatchId watch_ = 0;

  std::optional<LeaseDesk::Ticket> ticket_;
  std::optional<Grant> grant_;
  bool is_lease_confirmed_ = false;
  TimePoint granted_at_{};
  TimePoint upstream_end_{};  // of the answer's last byte

  std::unique_ptr<UpstreamConnection> upstream_;
  bool is_ending_transfer_ = false;
  bool is_upload_done_ = false;
  bool is_response_begun_ = false;  // a byte of the answer came
  std::optional<ResponseHead> response_;
  std::optional<std::uint64_t> response_length_;
  bool is_download_done_ = false;
  bool is_client_head_sent_ = false;
  bool is_recorded_ = false;
  std::deque<std::string> pieces_;
  std::uint64_t buffered_bytes_ = 0;
};

}  // namespace torpor::server
