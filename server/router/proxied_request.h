#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/router/answer.h"
#include "server/router/client_request.h"
#include "server/router/loop_event.h"
#include "server/router/request_failure.h"
#include "server/router/request_lease.h"
#include "server/router/response_buffer.h"
#include "server/router/router_core.h"
#include "server/router/upstream_transfer.h"

namespace torpor::server {

// One request on its way to a function's server and back: reads it from the client, takes a lease,
// transfers it, and writes the answer to the client. The lease is held from the grant until the
// whole answer is in the buffer. Used on the router's thread.
class ProxiedRequest {
 public:
  // `core` must outlive the request.
  ProxiedRequest(RouterCore& core, ClientRequest::Source client,
                 std::shared_ptr<const FunctionConfig> function, const std::string& upstream_target,
                 std::string request_id);
  ~ProxiedRequest();
  ProxiedRequest(const ProxiedRequest&) = delete;
  ProxiedRequest& operator=(const ProxiedRequest&) = delete;

  // Returns whether the client's connection can serve another request. At most once.
  boost::asio::awaitable<bool> Run();

  // Gives up now; Run then returns false.
  void Abort();

 private:
  template <typename T>
  using Awaitable = boost::asio::awaitable<T>;
  using Cause = RequestFailure::Cause;

  void OnFailure();
  void ReleaseLease();
  std::optional<Refusal> FindRefusal() const;
  // Finds the addresses of the function's servers, before a GPU is asked for: a name server may be
  // slow. False, and the request has failed, if no server's address is found.
  Awaitable<bool> Resolve();
  // Takes a lease and forwards the request; once more elsewhere while servers fail to begin an
  // answer and the function has others.
  Awaitable<void> Forward();
  Awaitable<bool> RespondAll();
  Awaitable<bool> RespondPiecewise();
  Awaitable<bool> Refuse(Refusal refusal);
  void PrepareClientHead(bool keep_alive);
  void AddTimings(std::vector<std::pair<std::string, std::string>>& fields) const;
  void Record(unsigned status);  // in the log and the metrics; the first call counts
  bool MayKeepAlive() const { return request_.WantsKeepAlive() && !core_.is_draining; }

  RouterCore& core_;
  const std::shared_ptr<const FunctionConfig> kept_function_;
  const FunctionConfig& function_;
  const std::string request_id_;
  const TimePoint begin_ = SteadyClock().Now();

  LoopEvent changed_;
  RequestFailure failure_;
  ClientRequest request_;
  ResponseBuffer response_;
  RequestLease lease_;
  UpstreamTransfer transfer_;
  HangupWatcher::WatchId watch_ = 0;
  bool is_client_head_sent_ = false;
  bool is_recorded_ = false;
};

}  // namespace torpor::server
