#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "server/broker/request_broker.h"
#include "server/controller/instance_health.h"
#include "server/controller/lease_service.h"
#include "server/controller/model/event_sink.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/session_table.h"
#include "server/controller/request_traces.h"

namespace torpor::server {

class SessionSaves;

// The router's requests, from Acquire to Release; see RequestBroker. Ids are the caller's, unique.
// On the controller's thread.
class Requests {
 public:
  // The arguments must outlive the object.
  Requests(InstanceTable& instances, const SessionTable& sessions, ExecutorTable& executors,
           InstanceHealth& health, SessionSaves& saves, RequestTraces& traces, EventSink& events,
           TaskLoop& loop)
      : instances_(instances),
        sessions_(sessions),
        executors_(executors),
        health_(health),
        saves_(saves),
        traces_(traces),
        events_(events),
        loop_(loop) {}

  // --- The router ---
  void Acquire(RequestId request, const RequestBroker::Demand& demand,
               RequestBroker::OnGrant on_grant, RequestBroker::OnLost on_lost);
  void ConfirmLease(RequestId request, const std::function<void()>& done);
  void Save(RequestId request, const std::function<void()>& done);
  void AskAgain(RequestId request);
  void Release(RequestId request, scheduler::Ending ending);

  // --- The scheduler's decisions, and leases ---
  bool Has(RequestId request) const { return requests_.count(request) > 0; }
  // The scheduler has granted the request a lease of the instance.
  void NoteLeased(RequestId request, InstanceId instance);
  // Grants the requests of the instance's lease, if all participants have acknowledged the lease.
  void RunTaken(FunctionInstance& instance);
  // Answers a request that does not run. Ignores unknown requests.
  void Fail(RequestId request, const absl::Status& status);
  // Requests of the lease that do not run go on to another instance, a few times, or fail.
  void OnLeaseEnded(const InstanceLease& lease);
  // Tells callers of running requests, unless their work is done again. Returns the lease's other
  // requests, to be queued again once the scheduler knows of the loss.
  std::vector<RequestId> OnLeaseLost(const LeaseService::Lost& lost);
  // A session that serves the instance's requests cannot go on: tells callers of requests with a
  // grant.
  void OnSessionLost(InstanceId instance, const std::string& why);
  // Queues a request again whose granted lease was lost, unless its function was removed. A request
  // whose caller has the grant waits for the same instance, which is at work on it.
  void Requeue(RequestId request);
  // Fails requests of the function that wait in the queue; a caller with a grant learns that
  // it is lost.
  void FailQueued(const RegisteredFunction& function, const absl::Status& why);
  // Fails the waiting requests of a removed function.
  void FailRemoved(const RegisteredFunction& function);
  // Whether a request runs on the instance, or is about to.
  bool IsUsing(InstanceId instance) const;

  // --- Ends of the node ---
  // Refuses new requests from now on; calls `when_idle` once none is left.
  void Drain(TaskLoop::Task when_idle);
  bool is_draining() const { return is_draining_; }
  // Refuses new requests and fails requests that do not run.
  void Shutdown();

  std::size_t queued() const;

 private:
  struct Request {
    enum class State { kQueued, kLeased, kRunning };  // by the scheduler; by the caller too
    RegisteredFunction* function = nullptr;
    InstanceId instance;  // unset while queued
    State state = State::kQueued;
    int leases_untaken = 0;  // that ended before the request ran
    TimePoint arrival;
    TimePoint give_up;    // queued without a grant no longer than until then
    Duration patience{};  // until give_up, at first and whenever the caller asks again
    RequestBroker::OnGrant on_grant;
    RequestBroker::OnLost on_lost;
    bool is_lost = false;      // on_lost was called for this grant
    bool was_granted = false;  // the caller has a grant, although the request may wait again
    bool is_orphan = false;    // runs under an earlier torpord's lease, and nothing is done again
    TimePoint granted{};       // when it began to run, perhaps under an earlier torpord's lease
    LeaseId lost_lease;        // the lease that the executor's death ended
    std::vector<SessionId> lost_sessions;
    // Called when the request runs again, or does not: a lost lease is replayed meanwhile.
    std::vector<TaskLoop::Task> when_settled;
  };

  // Returns null if the function has no such instance.
  FunctionInstance* Find(const RegisteredFunction& function, const std::string& name);
  // Goes on with a request that runs on the instance under a lease of an earlier torpord.
  void GoOn(RequestId id, Request& request, const FunctionInstance& instance);
  // Fails the request if it is queued without a grant when its time is over.
  void FailInTime(RequestId id, const Request& request);
  // Calls on_lost of a request with a grant, once a grant.
  void TellLost(Request& request, const absl::Status& why);
  // Whether the request's lost work is done again is known.
  void Settle(Request& request);
  // Takes the request out of its lease.
  void LeaveLease(RequestId id, Request& request);
  // The request is over; `why` is the reason for no answer, else empty.
  void Finish(RequestId request, scheduler::Ending ending, const std::string& why);
  void CheckIdle();

  InstanceTable& instances_;
  const SessionTable& sessions_;
  ExecutorTable& executors_;
  InstanceHealth& health_;
  SessionSaves& saves_;
  RequestTraces& traces_;
  EventSink& events_;
  TaskLoop& loop_;
  std::map<RequestId, Request> requests_;
  bool is_draining_ = false;
  TaskLoop::Task when_idle_;
};

}  // namespace torpor::server
