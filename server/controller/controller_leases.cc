#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/controller/controller.h"
#include "server/controller/cuda_errors.h"
#include "server/controller/extents.h"

// A lease, from the scheduler's grant until all sessions have given it back.
namespace torpor::server {
namespace {

// How long a session may take to acknowledge a lease, and to give it back once it is revoked: what
// runs on the GPU ends first, and it is the others who wait meanwhile.
constexpr Duration kSessionPatience = std::chrono::seconds(30);

}  // namespace

void Controller::Handle(const SessionPtr& session, const wire::LeaseRequest&) {
  if (session->implicit_request || session->is_lost) return;
  // Its last lease may still be on its way back; a grant may be on its way to it.
  session->wants_lease = static_cast<bool>(session->lease);
  if (!session->lease) RequestImplicitLease(session);
}

void Controller::RequestImplicitLease(const SessionPtr& session) {
  session->wants_lease = false;
  Instance& instance = instances_.at(session->instance);
  // A process of the function that came to CUDA only while the request was running, or another
  // device of those that the function has now; or it waits for the work of one that runs.
  const bool may_join = instance.lease && (instance.lease->is_explicit ||
                                           instance.parts.size() > 1 || instance.is_sharing);
  if (may_join && !instance.lease->is_revoked) {
    session->wants_lease = true;
    instance.lease->members[session->id] = MemberState::kPreparing;
    return AddMember(instance, session);
  }
  session->implicit_request = RequestId{next_implicit_request_++};
  implicit_requests_[session->implicit_request] = session->id;
  Feed(scheduler::RequestArrived{
      .request = session->implicit_request, .instance = instance.id, .is_implicit = true});
}

void Controller::RequestLeaseAgain(const SessionPtr& session) {
  if (session->wants_lease && session->is_able() && !session->lease) RequestImplicitLease(session);
}

void Controller::WithdrawImplicitRequest(Session& session) {
  const RequestId request = std::exchange(session.implicit_request, {});
  if (!request) return;
  implicit_requests_.erase(request);
  Feed(scheduler::RequestGone{request});
}

void Controller::DenyLease(const SessionPtr& session, const std::string& why) {
  LoseSession(session, {0, kCudaErrorMemoryAllocation, true, why});
}

void Controller::LoseSession(const SessionPtr& session, const wire::LeaseLost& lost) {
  session->is_lost = true;
  session->link->Send(lost);
  // Once the scheduler knows, too, what has led here.
  loop_.Post([this, session] { WithdrawImplicitRequest(*session); });
}

void Controller::AddMember(Instance& instance, const SessionPtr& session) {
  Lease& lease = *instance.lease;
  session->lease = lease.id;
  const GpuIndex gpu = GpuOf(lease, *session);
  const LeaseId id = lease.id;
  const auto prepare = [this, session, id, gpu] {
    session->steps.Add([this, session, id, gpu](const StepQueue::Finish& finish) {
      PrepareMember(session, id, gpu, finish);
    });
  };
  // Of an instance whose image was resident already, this session may be new.
  if (instance.parts.size() > 1 || instance.is_sharing) {
    return SwapInPeers(session, lease, prepare);
  }
  SwapInSession(session, gpu, [](const OperationResult&) {});
  prepare();
}

GpuIndex Controller::GpuOf(const Lease& lease, const Session& session) {
  return lease.gpus.at(static_cast<std::size_t>(session.device_index));
}

bool Controller::HasItsMemory(const Session& session, const Lease& lease) const {
  const std::vector<SessionPtr> owners = OwnersOpenedBy(session);
  return session.resident == GpuOf(lease, session) &&
         std::all_of(owners.begin(), owners.end(), [&](const SessionPtr& owner) {
           return owner->resident == GpuOf(lease, *owner);
         });
}

void Controller::PrepareMember(const SessionPtr& session, LeaseId lease, GpuIndex gpu,
                               const StepQueue::Finish& finish) {
  const Lease* const held = LeaseOf(*session, lease);
  if (!held) return finish();
  if (!session->is_able() || !HasItsMemory(*session, *held)) {
    if (session->is_able()) DenyLease(session, "its memory could not be brought to the GPU");
    EndMember(session, lease);
    return finish();
  }
  v1::DaemonMessage message;
  message.mutable_begin_lease()->set_lease_id(lease.value);
  message.mutable_begin_lease()->set_session_id(session->id.value);
  session->is_told_all = session->swaps.is_learning();
  message.mutable_begin_lease()->set_learn(session->is_told_all);
  Run(gpu, message, [this, session, lease, finish](const OperationResult& result) {
    Lease* const begun = LeaseOf(*session, lease);
    if (begun && result.status.ok()) {
      OfferLease(session, *begun);
    } else if (begun && !result.is_executor_lost) {
      spdlog::error("session {}: no lease: {}", session->id.value, result.status.ToString());
      DenyLease(session, "its executor refused the lease");
      EndMember(session, lease);
    }
    finish();
  });
}

void Controller::OfferLease(const SessionPtr& session, Lease& lease) {
  const GpuIndex gpu = GpuOf(lease, *session);
  const Executor& executor = *ExecutorOf(gpu);
  // Whatever lease it gets, it waits for none any more.
  const RequestId waiting = std::exchange(session->implicit_request, {});
  implicit_requests_.erase(waiting);
  session->wants_lease = false;
  NoteChanges(*session, lease);
  for (const SessionPtr& owner : OwnersOpenedBy(*session)) NoteChanges(*owner, lease);
  lease.members[session->id] = MemberState::kOffered;
  session->link->Send(wire::LeaseGrant{lease.id.value, lease.is_explicit, gpu.value,
                                       executor.epoch(), executor.registration().socket_path()});
  const LeaseId id = lease.id;
  loop_.RunAt(loop_.Now() + kSessionPatience, [this, session, id] {
    CloseUnless(session->id, id, MemberState::kAcked, "it did not take its lease in time");
  });
  if (lease.is_revoked) RevokeMember(session, lease);
  if (waiting && lease.requests.count(waiting) == 0) Feed(scheduler::RequestGone{waiting});
}

void Controller::NoteChanges(Session& session, const Lease& lease) {
  // A function that loads its model in its first request must not do so again, either.
  if (!lease.is_explicit || !session.was_saved) session.unsaved_lease = lease.id;
  session.has_changes = true;
}

void Controller::RevokeMember(const SessionPtr& session, Lease& lease) {
  const MemberState state = lease.members.at(session->id);
  // One that is still prepared is revoked right after it was offered.
  if (state != MemberState::kOffered && state != MemberState::kAcked) return;
  session->link->Send(wire::LeaseRevoke{lease.id.value});
  const LeaseId id = lease.id;
  loop_.RunAt(loop_.Now() + kSessionPatience, [this, session, id] {
    CloseUnless(session->id, id, MemberState::kReturning, "it did not give its lease back in time");
  });
}

void Controller::CloseUnless(SessionId session, LeaseId lease, MemberState passed,
                             const char* reason) {
  const SessionPtr found = FindSession(session);
  const Lease* const current = found ? LeaseOf(*found, lease) : nullptr;
  if (current && current->members.at(session) < passed) CloseSession(found, reason);
}

void Controller::Handle(const SessionPtr& session, const wire::LeaseAck& ack) {
  Lease* const lease = LeaseOf(*session, LeaseId{ack.lease_id});
  if (!lease || lease->members.at(session->id) != MemberState::kOffered) return;
  lease->members[session->id] = MemberState::kAcked;
  FlushGrants(instances_.at(session->instance));
}

void Controller::Handle(const SessionPtr& session, const wire::LeaseReturned& returned) {
  const LeaseId id{returned.lease_id};
  Lease* const lease = LeaseOf(*session, id);
  if (!lease) return;
  MemberState& state = lease->members.at(session->id);
  if (state != MemberState::kOffered && state != MemberState::kAcked) return;
  state = MemberState::kReturning;
  const GpuIndex gpu = GpuOf(*lease, *session);
  session->steps.Add([this, session, id, gpu](const StepQueue::Finish& finish) {
    if (!LeaseOf(*session, id)) return finish();
    v1::DaemonMessage message;
    message.mutable_end_lease()->set_lease_id(id.value);
    message.mutable_end_lease()->set_session_id(session->id.value);
    Run(gpu, message, [this, session, id, gpu, finish](const OperationResult& result) {
      if (!result.status.ok() && !result.is_executor_lost) {
        // What still runs there may write into the next occupant's memory: the lease ends with it.
        Condemn(*ExecutorOf(gpu), absl::StrCat("a lease did not end: ", result.status.ToString()));
      }
      if (result.status.ok()) {
        LearnFromLease(*session, id, result);
        EndMember(session, id);
      }
      finish();
    });
  });
}

void Controller::LearnFromLease(Session& session, LeaseId id, const OperationResult& result) {
  const Lease* const lease = LeaseOf(session, id);
  if (!lease) return;
  session.swaps.OnLease(OffsetsOf(result.learned.touched()), lease->is_explicit,
                        session.is_told_all);
}

Lease* Controller::LeaseOf(const Session& session, LeaseId lease) {
  if (!session.lease || session.lease != lease) return nullptr;
  std::optional<Lease>& held = instances_.at(session.instance).lease;
  return held && held->id == lease ? &*held : nullptr;
}

void Controller::EndMember(const SessionPtr& session, LeaseId lease) {
  Lease* const ended = LeaseOf(*session, lease);
  session->lease = {};
  if (!ended) return;
  ended->members.erase(session->id);
  Instance& instance = instances_.at(session->instance);
  if (ended->members.empty()) {
    EndLease(instance);
  } else {
    FlushGrants(instance);  // they may have been waiting for this one's acknowledgement only
  }
  RequestLeaseAgain(session);
}

void Controller::AccountLease(Instance& instance, const Lease& lease) {
  const Duration held = loop_.Now() - lease.since;
  for (const GpuIndex gpu : lease.gpus) {
    instance.gpu_seconds += ToSeconds(held);
    busy_seconds_[gpu] += ToSeconds(held);
    telemetry_.OnLeaseEnded(instance.config.name, gpu, held, lease.is_explicit);
  }
}

void Controller::EndLease(Instance& instance) {
  const Lease lease = *std::exchange(instance.lease, std::nullopt);
  AccountLease(instance, lease);
  // Before anything that the scheduler may decide now for the same session.
  for (const SessionPtr& session : AbleSessionsOf(instance)) {
    if (!session->unsaved_lease) continue;
    SwapOutSession(session, GpuOf(lease, *session), WriteBackReason::kCheckpoint,
                   [](const OperationResult&) {});
  }
  Feed(scheduler::LeaseEnded{instance.id});
  // Nothing joins a lease any more of which the scheduler knows that it has ended.
  for (const RequestId request : lease.requests) {
    const auto found = requests_.find(request);
    if (found == requests_.end() || found->second.state == Request::State::kRunning) continue;
    FailRequest(request, absl::UnavailableError("the function's process did not take its lease"));
  }
}

void Controller::LoseLease(Instance& instance, std::vector<RequestId>& requeued) {
  const Lease lease = *std::exchange(instance.lease, std::nullopt);
  AccountLease(instance, lease);
  bool is_own_fault = false;
  std::vector<SessionId> harmed;
  for (const auto& [id, state] : lease.members) {
    const SessionPtr session = FindSession(id);
    is_own_fault |= session->is_lost;
    if (state != MemberState::kPreparing) harmed.push_back(id);
    LoseMember(session, state, lease);
  }
  EndLeaseOnSurvivors(instance, lease);
  for (const RequestId id : lease.requests) {
    const auto found = requests_.find(id);
    const bool is_waiting = found != requests_.end()
                                ? found->second.state != Request::State::kRunning
                                : implicit_requests_.count(id) > 0;
    if (is_waiting) {
      requeued.push_back(id);
      continue;
    }
    // Its function has not used the GPU yet; it will ask for another when it does.
    if (found == requests_.end() || harmed.empty()) continue;
    found->second.lost_lease = lease.id;
    found->second.lost_sessions = harmed;
    // A function that broke its GPU itself has been told, and answers its request by itself.
    if (is_own_fault) continue;
    ++instance.errors;
    found->second.on_lost(absl::UnavailableError("the executor died while the request ran"));
  }
}

void Controller::EndLeaseOnSurvivors(const Instance& instance, const Lease& lease) {
  for (const auto& [id, state] : lease.members) {
    const SessionPtr session = FindSession(id);
    const GpuIndex gpu = GpuOf(lease, *session);
    if (instance.parts.size() == 1 || !ExecutorOf(gpu)->is_attached()) continue;
    session->steps.Add([this, session, gpu, id = lease.id](const StepQueue::Finish& finish) {
      v1::DaemonMessage message;
      message.mutable_end_lease()->set_lease_id(id.value);
      message.mutable_end_lease()->set_session_id(session->id.value);
      Run(gpu, message, [this, gpu, finish](const OperationResult& result) {
        if (absl::IsDeadlineExceeded(result.status)) {
          Condemn(*ExecutorOf(gpu), "the work of a lost lease does not end");
        }
        finish();
      });
    });
  }
}

// The image holds later uploads beside earlier results: of no use to whom both matter.
bool Controller::LosesState(const Session& session) const {
  return session.has_changes && instances_.at(session.instance).config.keeps_state;
}

void Controller::LoseMember(const SessionPtr& session, MemberState state, const Lease& lease) {
  session->lease = {};
  if (state == MemberState::kPreparing) {
    // Once the scheduler knows, too, that the executor has gone.
    return loop_.Post([this, session] { RequestLeaseAgain(session); });
  }
  if (session->is_lost) return;
  const bool is_sticky = session->unsaved_lease == lease.id || LosesState(*session);
  const wire::LeaseLost lost = {lease.id.value, kCudaErrorDevicesUnavailable, is_sticky,
                                "the executor of the GPU has died"};
  if (is_sticky) return LoseSession(session, lost);
  session->link->Send(lost);
}

}  // namespace torpor::server
