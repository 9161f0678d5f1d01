#include "server/router/request_failure.h"

#include <fmt/format.h>

#include <utility>

#include "server/broker/retry_after.h"

namespace torpor::server {
void RequestFailure::Set(Cause cause, std::string detail) {
  if (cause_ != Cause::kNone) return;
  cause_ = cause;
  detail_ = std::move(detail);
  on_failure_();
}

void RequestFailure::SetNotGranted(const absl::Status& reason) {
  if (cause_ == Cause::kNone) not_granted_ = reason;
  Set(Cause::kNotGranted, std::string(reason.message()));
}

void RequestFailure::Clear() {
  cause_ = Cause::kNone;
  detail_.clear();
}

Refusal RequestFailure::RefusalOfGrant(std::string_view name, const RouterConfig& config) const {
  if (absl::IsNotFound(not_granted_)) return {404, "unknown_function", detail_};
  if (absl::IsDeadlineExceeded(not_granted_)) {
    return {504, "queue_timeout",
            fmt::format("function {} got no GPU within {} ms (queue_timeout): {}", name,
                        FormatMilliseconds(config.queue_timeout), detail_)};
  }
  if (absl::IsResourceExhausted(not_granted_)) {
    return {429, "queue_full",
            fmt::format("function {} takes no more requests now: {}", name, detail_),
            kRetrySoonSeconds};
  }
  // The answer would come after the deadline, so that retrying is no use.
  if (absl::IsOutOfRange(not_granted_)) {
    return {504, "too_late", fmt::format("function {} was not asked: {}", name, detail_)};
  }
  if (absl::IsPermissionDenied(not_granted_)) {
    return {503, "struck", fmt::format("function {} gets no GPU now: {}", name, detail_),
            RetryAfterSeconds(not_granted_).value_or(kRetrySoonSeconds)};
  }
  return {503, "unavailable", fmt::format("function {} cannot run now: {}", name, detail_),
          kRetrySoonSeconds};
}

Refusal RequestFailure::ToRefusal(const FunctionConfig& function,
                                  const RouterConfig& config) const {
  const std::string& name = function.name;
  switch (cause_) {
    case Cause::kClientBodyTooLarge:
      return {
          413, "body_too_large",
          fmt::format("the body is longer than max_body_bytes ({} bytes)", config.max_body_bytes)};
    case Cause::kClientBodyMalformed:
      return {400, "malformed_body", fmt::format("the body is malformed: {}", detail_)};
    case Cause::kNoRoomForBody:
      return {503, "spool_full",
              fmt::format("there is no room for the body: {}; send the request again later, raise "
                          "spool_limit or make room in spool_dir",
                          detail_),
              kRetrySoonSeconds};
    case Cause::kNotGranted:
      return RefusalOfGrant(name, config);
    case Cause::kLeaseLost:
      return {502, "lease_lost",
              fmt::format("function {} lost its GPU while it ran: {}; send the request again if it "
                          "may run twice",
                          name, detail_)};
    case Cause::kUpstreamDown:
      return {
          503, "upstream_down",
          fmt::format("the server of function {} does not take connections ({}); is it running?",
                      name, detail_),
          kRetrySoonSeconds};
    case Cause::kUpstreamTimeout:
      if (function.held_at_most() < function.upstream_timeout) {
        return {504, "run_limit",
                fmt::format("function {} held its GPU for {} ms without an answer (run_limit)",
                            name, FormatMilliseconds(function.run_limit))};
      }
      return {504, "upstream_timeout",
              fmt::format("function {} did not answer within {} ms (upstream_timeout)", name,
                          FormatMilliseconds(function.upstream_timeout))};
    default:
      return {502, "upstream_broken",
              fmt::format("the server of function {} broke its answer off: {}", name, detail_)};
  }
}

RequestOutcome RequestFailure::OutcomeOf(unsigned status) const {
  switch (cause_) {
    case Cause::kNone:
      return status >= 500 ? RequestOutcome::kUpstreamError : RequestOutcome::kOk;
    case Cause::kClientGone:
    case Cause::kAborted:
      return RequestOutcome::kCancelled;
    case Cause::kNotGranted:
      return absl::IsDeadlineExceeded(not_granted_) ? RequestOutcome::kTimeout
                                                    : RequestOutcome::kRejected;
    case Cause::kRefused:
    case Cause::kClientBodyMalformed:
    case Cause::kClientBodyTooLarge:
    case Cause::kNoRoomForBody:
      return RequestOutcome::kRejected;
    case Cause::kUpstreamTimeout:
      return RequestOutcome::kTimeout;
    case Cause::kUpstreamDown:
      return RequestOutcome::kUpstreamError;
    case Cause::kLeaseLost:
    case Cause::kUpstreamBroken:
      return RequestOutcome::kLost;
  }
  return RequestOutcome::kOk;
}

scheduler::Ending RequestFailure::EndingOf(bool is_answered, bool is_server_error) const {
  switch (cause_) {
    case Cause::kUpstreamDown:
    case Cause::kUpstreamBroken:
    case Cause::kUpstreamTimeout:
      return scheduler::Ending::kFailed;
    case Cause::kLeaseLost:
      return scheduler::Ending::kLost;
    case Cause::kNone:
      if (!is_answered) break;
      return is_server_error ? scheduler::Ending::kFailed : scheduler::Ending::kAnswered;
    // The client has gone or sent a body that no function can answer or that found no room; or no
    // lease was granted.
    case Cause::kClientGone:
    case Cause::kClientBodyMalformed:
    case Cause::kClientBodyTooLarge:
    case Cause::kNoRoomForBody:
    case Cause::kAborted:
    case Cause::kRefused:
    case Cause::kNotGranted:
      break;
  }
  return scheduler::Ending::kCancelled;
}

}  // namespace torpor::server
