#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "scheduler/events.h"
#include "server/controller/domain_seats.h"
#include "server/controller/images/image_swaps.h"
#include "server/controller/implicit_requests.h"
#include "server/controller/instance_health.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/session_table.h"
#include "server/controller/model/telemetry.h"

namespace torpor::server {

// Leases, from the scheduler's grant until all participants have given them back or an executor has
// died. On the controller's thread.
class LeaseService {
 public:
  struct Handlers {
    // A participant has acknowledged or has gone: requests may run once all have acknowledged.
    std::function<void(FunctionInstance&)> taken;
    // The lease has ended, as the scheduler knows. Its requests that do not run yet never will.
    std::function<void(const InstanceLease&)> ended;
    // Closes a session that breaks the protocol.
    std::function<void(const SessionPtr&, const std::string& reason)> close;
    // The session's work on the GPU does not end, and its executor is killed. May be null.
    std::function<void(const ClientSession&)> endless{};
  };

  // The arguments must outlive the object.
  LeaseService(InstanceTable& instances, const SessionTable& sessions, ExecutorTable& executors,
               DomainSeats& seats, InstanceHealth& health, ImageSwaps& swaps,
               ImplicitRequests& implicit, EventSink& events, Telemetry& telemetry, TaskLoop& loop,
               Handlers handlers);

  // --- Messages of sessions ---
  void Request(const SessionPtr& session);
  // The session's client is connected again: the session takes part in an explicit lease that its
  // instance has meanwhile.
  void Rejoin(const SessionPtr& session);
  void Acknowledge(const SessionPtr& session, const wire::LeaseAck& ack);
  void Return(const SessionPtr& session, const wire::LeaseReturned& returned);

  // --- Actions of the scheduler ---
  // Gives the instance a lease with these participants. Without any the lease stands until Revoke
  // or End. The instance must have no lease.
  void Begin(const scheduler::Grant& action, bool is_explicit,
             const std::vector<SessionPtr>& participants);
  void Revoke(FunctionInstance& instance);

  // --- Ends ---
  // Ends the session's part in `lease`, if any; with the last participant the lease ends.
  void EndParticipant(const SessionPtr& session, LeaseId lease);
  // Ends the instance's lease, which must have no participants.
  void End(FunctionInstance& instance);
  struct Lost {
    InstanceLease lease;
    std::vector<SessionId> harmed;  // participants already told of the lease
    bool is_own_fault = false;      // a participant broke the GPU, and knows
    bool is_replayed = false;       // all harmed participants will do their work again
  };
  // An executor of the instance's lease has died. Tells participants, but not the scheduler.
  Lost Lose(FunctionInstance& instance);

  // --- Sessions that cannot go on ---
  // The session will never get the lease that its calls wait for: fails the session to end the
  // wait.
  void Deny(const SessionPtr& session, const std::string& why);
  // Fails the session for good: leaves it out of later leases and swaps. Its process may go on
  // without a GPU.
  void LoseSession(const SessionPtr& session, const wire::LeaseLost& lost);
  // Whether losing the GPU's image is fatal for the session, since the host's image lacks changes
  // that must survive and that no replay makes again.
  bool LosesState(const ClientSession& session) const;
  // Whether the session can do again what the host's image lacks: no other session reaches the
  // memory, and the image is as of one of the session's commands.
  bool MayReplay(const ClientSession& session) const;
  // The session's work on a GPU did not end, which costs the executor.
  void NoteEndless(const ClientSession& session);
  // The session cannot do its lost work again: fails the session, and ends its part in a lease.
  void OnReplayFailed(const SessionPtr& session, const std::string& why);

  // Leases get ids from `first` on. Before the first lease.
  void BeginIdsAt(LeaseId first) { next_lease_ = first.value; }
  // Returns the session's present lease if `lease` is its id, else null.
  InstanceLease* LeaseOf(const ClientSession& session, LeaseId lease) const;

  // Returns the seconds of ended leases on `gpu`.
  double BusySecondsOf(GpuIndex gpu) const;

 private:
  void RequestImplicitly(const SessionPtr& session);
  // Asks again for a session whose wish for a lease was left unmet.
  void RequestAgain(const SessionPtr& session);
  void AddParticipant(FunctionInstance& instance, const SessionPtr& session);
  // Whether the session's image, and all images open in its process, are on the lease's GPUs.
  bool HasItsMemory(const ClientSession& session, const InstanceLease& lease) const;
  void Prepare(const SessionPtr& session, LeaseId lease, GpuIndex gpu,
               const StepQueue::Finish& finish);
  void Offer(const SessionPtr& session, InstanceLease& lease);
  void RevokeParticipant(const SessionPtr& session, InstanceLease& lease);
  // When the lease's requests have had all the time that their function may have.
  TimePoint LimitOf(const ClientSession& session, const InstanceLease& lease) const;
  // How long the session has to take the lease, or to give it back, from now on.
  Duration PatienceWith(const ClientSession& session, const InstanceLease& lease) const;
  // Closes the session if its state in the lease is before `passed`.
  void CloseUnless(SessionId session, LeaseId lease, ParticipantState passed, const char* reason);
  void EndOnExecutor(const SessionPtr& session, LeaseId lease, GpuIndex gpu,
                     const StepQueue::Finish& finish);
  void LoseParticipant(const SessionPtr& session, ParticipantState state,
                       const InstanceLease& lease);
  // Ends the lost lease on the executors that are still alive.
  void EndOnSurvivors(const FunctionInstance& instance, const InstanceLease& lease);
  void Account(FunctionInstance& instance, const InstanceLease& lease);

  InstanceTable& instances_;
  const SessionTable& sessions_;
  ExecutorTable& executors_;
  DomainSeats& seats_;
  InstanceHealth& health_;
  ImageSwaps& swaps_;
  ImplicitRequests& implicit_;
  EventSink& events_;
  Telemetry& telemetry_;
  TaskLoop& loop_;
  const Handlers handlers_;
  std::map<GpuIndex, double> busy_seconds_;
  std::uint64_t next_lease_ = 1;
};

}  // namespace torpor::server
