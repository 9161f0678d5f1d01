#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "scheduler/events.h"
#include "server/broker/request_record.h"
#include "server/config/config.h"
#include "server/router/answer.h"

namespace torpor::server {

// Why a proxied request could not be answered as its function would. The first cause counts: later
// ones follow from the teardown. Not thread-safe.
class RequestFailure {
 public:
  enum class Cause {
    kNone,
    kRefused,     // the router does not proxy such a request, or not now
    kClientGone,  // the client closed the connection, or stalled
    kClientBodyMalformed,
    kClientBodyTooLarge,
    kNoRoomForBody,  // or the disk, where bodies are, fails
    kNotGranted,     // the broker refused a lease
    kLeaseLost,
    kUpstreamDown,  // the function's server takes no connections
    kUpstreamBroken,
    kUpstreamTimeout,
    kAborted,  // the router stops
  };

  // `on_failure` is called after each first cause, on the caller's stack.
  explicit RequestFailure(std::function<void()> on_failure) : on_failure_(std::move(on_failure)) {}

  // Notes a cause. `detail` is for the log and for the client's answer.
  void Set(Cause cause, std::string detail);
  // Notes kNotGranted with the broker's reason.
  void SetNotGranted(const absl::Status& reason);
  // Forgets the cause, before another try.
  void Clear();

  explicit operator bool() const { return cause_ != Cause::kNone; }
  Cause cause() const { return cause_; }
  const std::string& detail() const { return detail_; }
  // Whether the client no longer takes an answer.
  bool IsClientAway() const { return cause_ == Cause::kClientGone || cause_ == Cause::kAborted; }

  // The answer that the client gets; only for a cause after which the client listens, and not for
  // kRefused, whose answer is the refusal's own.
  Refusal ToRefusal(const FunctionConfig& function, const RouterConfig& config) const;
  // How the request counts in the metrics. `status`: of the answer, if there was one.
  RequestOutcome OutcomeOf(unsigned status) const;
  // How the lease ended, for the scheduler. `is_answered`: the function's whole answer came.
  scheduler::Ending EndingOf(bool is_answered, bool is_server_error) const;

 private:
  Refusal RefusalOfGrant(std::string_view name, const RouterConfig& config) const;

  const std::function<void()> on_failure_;
  Cause cause_ = Cause::kNone;
  std::string detail_;
  absl::Status not_granted_;
};

}  // namespace torpor::server
