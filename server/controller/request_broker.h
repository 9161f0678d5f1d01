#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/ids.h"
#include "scheduler/events.h"

namespace torpor::server {

enum class SwapSource { kResident, kHost, kPeer };

// "resident", "host" or "peer".
constexpr const char* NameOf(SwapSource source) {
  constexpr const char* kNames[] = {"resident", "host", "peer"};
  return kNames[static_cast<int>(source)];
}

// The right of a request to run: its instance holds a lease, and of the sessions that it has, if
// any, the images are resident and the clients have acknowledged.
struct Grant {
  RequestId request;
  LeaseId lease;
  GpuIndex gpu;
  SwapSource source = SwapSource::kResident;
  Duration queue{};  // from Acquire to the decision to run it
  Duration swap{};   // from there to the grant
};

// What the router asks of the controller. Thread-safe; callbacks come on the controller's thread
// and must not block.
class RequestBroker {
 public:
  virtual ~RequestBroker() = default;

  using OnGrant = std::function<void(absl::StatusOr<Grant>)>;
  // The lease was lost in the middle of the request (its executor died). At most once, after
  // OnGrant gave a lease and before Release.
  using OnLost = std::function<void(absl::Status)>;

  struct Demand {
    std::string function;
    std::string id;  // the caller's name for the request, by which it can be explained
    TimePoint give_up;
  };

  // Queues a request. `on_grant` is called exactly once, also when the request is refused:
  // NotFound (no such function), Unavailable (draining, no GPU), ResourceExhausted (as many
  // requests wait as may), OutOfRange (it can no longer be answered within its deadline),
  // DeadlineExceeded (still queued at `give_up`), Cancelled (Release came first).
  virtual RequestId Acquire(const Demand& demand, OnGrant on_grant, OnLost on_lost) = 0;

  // For a caller that has seen something go wrong and wants to know whether the executor's death is
  // the reason: calls `done` once it is certain that the lease was intact at the time of this call,
  // or else after OnLost, or when an executor that hangs has said nothing for a second. Between the
  // grant and Release.
  virtual void ConfirmLease(RequestId request, std::function<void()> done) = 0;

  // The request is over, or its caller has gone; kFailed also where the function has answered with
  // an error of the server's. Exactly once for every Acquire.
  virtual void Release(RequestId request, scheduler::Ending ending) = 0;
};

}  // namespace torpor::server
