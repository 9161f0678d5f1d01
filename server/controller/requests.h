#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "server/broker/request_broker.h"
#include "server/controller/lease_service.h"
#include "server/controller/model/event_sink.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/session_table.h"
#include "server/controller/request_traces.h"

namespace torpor::server {

// The router's requests, from Acquire to Release; see RequestBroker. Ids are the caller's, unique.
// On the controller's thread.
class Requests {
 public:
  // The arguments must outlive the object.
  Requests(InstanceTable& instances, const SessionTable& sessions, ExecutorTable& executors,
           RequestTraces& traces, EventSink& events, TaskLoop& loop)
      : instances_(instances),
        sessions_(sessions),
        executors_(executors),
        traces_(traces),
        events_(events),
        loop_(loop) {}

  // --- The router ---
  void Acquire(RequestId request, const RequestBroker::Demand& demand,
               RequestBroker::OnGrant on_grant, RequestBroker::OnLost on_lost);
  void ConfirmLease(RequestId request, const std::function<void()>& done);
  void Release(RequestId request, scheduler::Ending ending);

  // --- The scheduler's decisions, and leases ---
  bool Has(RequestId request) const { return requests_.count(request) > 0; }
  // The scheduler has granted a lease for the request.
  void NoteLeased(RequestId request);
  // Grants the requests of the instance's lease, if all participants have acknowledged the lease.
  void RunTaken(FunctionInstance& instance);
  // Answers a request that does not run. Ignores unknown requests.
  void Fail(RequestId request, const absl::Status& status);
  // Fails requests of the lease that do not run.
  void OnLeaseEnded(const InstanceLease& lease);
  // Tells callers of running requests. Returns the lease's other requests, to be queued again once
  // the scheduler knows of the loss.
  std::vector<RequestId> OnLeaseLost(const LeaseService::Lost& lost);
  // Queues a request again whose granted lease was lost.
  void Requeue(RequestId request);

  // --- Ends of the node ---
  // Refuses new requests from now on; calls `when_idle` once none is left.
  void Drain(TaskLoop::Task when_idle);
  bool is_draining() const { return is_draining_; }
  // Refuses new requests and fails requests that do not run.
  void Shutdown();

  std::size_t queued() const;
  bool HasQueued(InstanceId instance) const;

 private:
  struct Request {
    enum class State { kQueued, kLeased, kRunning };  // by the scheduler; by the caller too
    InstanceId instance;
    State state = State::kQueued;
    TimePoint arrival;
    RequestBroker::OnGrant on_grant;
    RequestBroker::OnLost on_lost;
    LeaseId lost_lease;  // the lease that the executor's death ended
    std::vector<SessionId> lost_sessions;
  };

  void FailAt(TimePoint give_up, RequestId request);
  // The request is over; `why` is the reason for no answer, else empty.
  void Finish(RequestId request, scheduler::Ending ending, const std::string& why);
  void CheckIdle();

  InstanceTable& instances_;
  const SessionTable& sessions_;
  ExecutorTable& executors_;
  RequestTraces& traces_;
  EventSink& events_;
  TaskLoop& loop_;
  std::map<RequestId, Request> requests_;
  bool is_draining_ = false;
  TaskLoop::Task when_idle_;
};

}  // namespace torpor::server
