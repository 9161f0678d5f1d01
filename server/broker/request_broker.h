#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/ids.h"
#include "scheduler/events.h"
#include "server/broker/swap_source.h"

namespace torpor::server {

// The right of a request to run: its instance holds a lease, all images of its sessions are
// resident, and all clients have acknowledged.
struct RequestGrant {
  RequestId request;
  LeaseId lease;
  std::string instance;       // of the function
  std::string upstream;       // host:port of the instance's server; empty: none is known
  bool has_siblings = false;  // the function has other instances: AskAgain may help
  GpuIndex gpu;
  SwapSource source = SwapSource::kResident;
  Duration queue{};  // from Acquire to the scheduler's decision
  Duration swap{};   // from there to the grant
};

// The router's interface to the controller. Thread-safe; callbacks come on the controller's thread
// and must not block.
class RequestBroker {
 public:
  virtual ~RequestBroker() = default;

  using OnGrant = std::function<void(absl::StatusOr<RequestGrant>)>;
  // The lease was lost during the request (its executor died). Called at most once a grant, before
  // AskAgain or Release.
  using OnLost = std::function<void(absl::Status)>;

  struct Demand {
    std::string function;
    std::string id;  // the caller's name for the request, for explanations
    TimePoint give_up;
    // Of a request that has waited elsewhere; unset, or in the future: now.
    std::optional<TimePoint> arrival{};
    // The instance that runs the request, as an earlier torpord's grant said. Such a request gets
    // no grant: it waits for the instance's next lease, under which the instance's sessions do
    // again what was lost. If they cannot, its lease counts as lost.
    std::string ran_on{};
    // When that grant came; unset: unknown, or no such grant.
    std::optional<TimePoint> granted{};
  };

  // Queues a request for any instance. Calls `on_grant` exactly once, also on refusal: NotFound
  // (unknown function), Unavailable (draining, no GPU), ResourceExhausted (queue full), OutOfRange
  // (the deadline cannot be met any more), DeadlineExceeded (still queued at `give_up`), Cancelled
  // (Release came first), PermissionDenied (the function gets no GPU for a while, as
  // RetryAfterSeconds tells, since it has ended executors).
  virtual RequestId Acquire(const Demand& demand, OnGrant on_grant, OnLost on_lost) = 0;

  // For a caller that must know whether a failure comes from the executor's death: calls `done`
  // when the lease was certainly intact at the time of the call, or after OnLost, or when a hanging
  // executor has been silent for a second. Call between the grant and Release.
  virtual void ConfirmLease(RequestId request, std::function<void()> done) = 0;

  // For a function whose replies wait until their work is in host memory (durability: request):
  // calls `done` when that is so for all that the instance had done at the time of the call, or
  // after OnLost, if that cannot be. Takes as long as the copies, and the executor's successor if
  // it dies. Call between the grant and Release, and not while ConfirmLease is at work.
  virtual void Save(RequestId request, std::function<void()> done) = 0;

  // The granted instance's server took no connection, or broke off before it began to answer: gives
  // the lease back and queues the request in its old place, for another instance if one serves, for
  // as long as Acquire did at most. Calls `on_grant` of Acquire once more, with the same statuses.
  // Call between a grant and Release.
  virtual void AskAgain(RequestId request) = 0;

  // The request is over, or its caller has gone; kFailed includes server errors of the function.
  // Call exactly once for every Acquire.
  virtual void Release(RequestId request, scheduler::Ending ending) = 0;
};

}  // namespace torpor::server
