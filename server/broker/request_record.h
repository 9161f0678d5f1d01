#pragma once

#include <string>

#include "base/clock.h"
#include "server/broker/swap_source.h"

namespace torpor::server {

// The end of a request; the label `outcome` of torpor_requests_total.
enum class RequestOutcome {
  kOk,             // the upstream answered, whatever its status below 500
  kUpstreamError,  // the upstream answered with 5xx
  kRejected,       // refused: malformed, too large, draining, no instance
  kTimeout,        // too long in the queue or at the upstream
  kLost,           // the lease or the upstream broke in mid-request
  kCancelled,      // the client went away
};

// A finished request, for the metrics.
struct RequestRecord {
  std::string function;
  RequestOutcome outcome = RequestOutcome::kOk;
  Duration duration{};      // from the request's header to the whole answer
  bool is_granted = false;  // else the next fields are unset
  SwapSource source = SwapSource::kResident;
  Duration queue{};
  Duration swap{};
  Duration run{};  // from the grant to the end of the upstream's answer
};

}  // namespace torpor::server
