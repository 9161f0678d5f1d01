#include "server/controller/lease_service.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "server/controller/model/cuda_errors.h"
#include "server/controller/model/session_journal.h"

namespace torpor::server {
namespace {

// How long a session may take to acknowledge a lease, and to give it back once revoked. Work on the
// GPU ends first, while other functions wait.
constexpr Duration kSessionPatience = std::chrono::seconds(30);
// For a session to give its lease back once its requests have had their time.
constexpr Duration kOverduePatience = std::chrono::milliseconds(500);

v1::DaemonMessage EndLeaseMessage(const ClientSession& session, LeaseId lease) {
  v1::DaemonMessage message;
  message.mutable_end_lease()->set_lease_id(lease.value);
  message.mutable_end_lease()->set_session_id(session.id.value);
  return message;
}

}  // namespace

LeaseService::LeaseService(InstanceTable& instances, const SessionTable& sessions,
                           ExecutorTable& executors, DomainSeats& seats, InstanceHealth& health,
                           ImageSwaps& swaps, ImplicitRequests& implicit, EventSink& events,
                           Telemetry& telemetry, TaskLoop& loop, Handlers handlers)
    : instances_(instances),
      sessions_(sessions),
      executors_(executors),
      seats_(seats),
      health_(health),
      swaps_(swaps),
      implicit_(implicit),
      events_(events),
      telemetry_(telemetry),
      loop_(loop),
      handlers_(std::move(handlers)) {}

void LeaseService::Request(const SessionPtr& session) {
  if (session->lease.implicit_request || session->is_lost) return;
  // The last lease may still be on its way back, or a grant on its way to the client.
  session->lease.is_wanted = static_cast<bool>(session->lease.id);
  if (!session->lease.id) RequestImplicitly(session);
}

void LeaseService::Rejoin(const SessionPtr& session) {
  const std::optional<InstanceLease>& lease = instances_.Of(*session).lease;
  if (lease && lease->is_explicit && !lease->is_revoked && !session->lease.id) Request(session);
}

void LeaseService::RequestImplicitly(const SessionPtr& session) {
  session->lease.is_wanted = false;
  FunctionInstance& instance = instances_.Of(*session);
  // A process that started to use CUDA during the request, or another device of the present lease,
  // or a process that waits for a running one's work.
  const bool may_join = instance.lease && (instance.lease->is_explicit ||
                                           instance.shards.size() > 1 || instance.is_sharing);
  if (may_join && !instance.lease->is_revoked) {
    session->lease.is_wanted = true;
    instance.lease->participants[session->id] = ParticipantState::kPreparing;
    return AddParticipant(instance, session);
  }
  // A function that ends executors gets no GPU outside of requests either.
  const TimePoint refused_until = instance.function->strikes.refused_until();
  if (loop_.Now() < refused_until) {
    session->lease.is_wanted = true;
    return loop_.RunAt(refused_until, [this, session] { RequestAgain(session); });
  }
  implicit_.Add(*session);
}

void LeaseService::RequestAgain(const SessionPtr& session) {
  if (session->lease.is_wanted && session->is_able() && !session->lease.id) {
    RequestImplicitly(session);
  }
}

void LeaseService::Deny(const SessionPtr& session, const std::string& why) {
  LoseSession(session, {0, kCudaErrorMemoryAllocation, true, why});
}

void LeaseService::LoseSession(const SessionPtr& session, const wire::LeaseLost& lost) {
  session->is_lost = true;
  session->lost_since = loop_.Now();
  session->link->Send(lost);
  // Once the scheduler knows the cause, too.
  loop_.Post([this, session] {
    implicit_.Withdraw(*session);
    if (FunctionInstance* const known = instances_.FindById(session->instance)) {
      health_.Check(*known);
    }
  });
}

bool LeaseService::LosesState(const ClientSession& session) const {
  return session.image.has_changes() && instances_.Of(session).config().survives() &&
         !MayReplay(session);
}

bool LeaseService::MayReplay(const ClientSession& session) const {
  const FunctionInstance& instance = instances_.Of(session);
  const bool is_alone = instance.shards.size() == 1 && !instance.is_sharing &&
                        !session.shared.was_opened() && sessions_.PeersOf(session).empty();
  return instance.config().survives() && is_alone && session.memory.files &&
         session.memory.files->checkpoint().is_whole();
}

void LeaseService::OnReplayFailed(const SessionPtr& session, const std::string& why) {
  spdlog::error("session {} of {} is lost: {}", session->id.value,
                instances_.Of(*session).config().name, why);
  const LeaseId lease = session->lease.id;
  if (!session->is_lost)
    LoseSession(session, {lease.value, kCudaErrorDevicesUnavailable, true, why});
  if (lease) Return(session, {lease.value});
}

void LeaseService::Begin(const scheduler::Grant& action, bool is_explicit,
                         const std::vector<SessionPtr>& participants) {
  FunctionInstance& instance = instances_.At(action.instance);
  TORPOR_CHECK(!instance.lease);
  InstanceLease& lease = instance.lease.emplace();
  lease.id = LeaseId{next_lease_++};
  lease.gpus = action.secondary_gpus;
  lease.gpus.insert(lease.gpus.begin(), action.gpu);
  lease.is_explicit = is_explicit;
  lease.since = lease.last_request = loop_.Now();
  lease.source = instance.placement.source;
  lease.requests = {action.request};
  for (const SessionPtr& session : participants) {
    lease.participants[session->id] = ParticipantState::kPreparing;
  }
  for (const SessionPtr& session : participants) AddParticipant(instance, session);
}

void LeaseService::AddParticipant(FunctionInstance& instance, const SessionPtr& session) {
  InstanceLease& lease = *instance.lease;
  session->lease.id = lease.id;
  const GpuIndex gpu = GpuOf(lease, *session);
  // The images of an instance may be on a GPU where the domain of a new session has no executor.
  if (!executors_.IsAttached(session->On(gpu))) {
    session->steps.Add([this, session, gpu](const StepQueue::Finish& finish) {
      seats_.Ensure(session->On(gpu), [finish](const absl::Status&) { finish(); });
    });
  }
  const auto prepare = [this, session, id = lease.id, gpu] {
    session->steps.Add([this, session, id, gpu](const StepQueue::Finish& finish) {
      Prepare(session, id, gpu, finish);
    });
  };
  // The instance's image may be resident while this session is new.
  if (instance.shards.size() > 1 || instance.is_sharing) {
    return swaps_.SwapInWithPeers(session, lease, prepare);
  }
  swaps_.SwapIn(session, gpu, [](const OperationResult&) {});
  prepare();
}

bool LeaseService::HasItsMemory(const ClientSession& session, const InstanceLease& lease) const {
  const std::vector<SessionPtr> owners = sessions_.OwnersOpenedBy(session);
  return session.image.IsOn(GpuOf(lease, session)) &&
         std::all_of(owners.begin(), owners.end(), [&](const SessionPtr& owner) {
           return owner->image.IsOn(GpuOf(lease, *owner));
         });
}

void LeaseService::Prepare(const SessionPtr& session, LeaseId lease, GpuIndex gpu,
                           const StepQueue::Finish& finish) {
  const InstanceLease* const held = LeaseOf(*session, lease);
  if (!held) return finish();
  if (!session->is_able() || !HasItsMemory(*session, *held)) {
    if (session->is_able()) Deny(session, "its memory could not be brought to the GPU");
    EndParticipant(session, lease);
    return finish();
  }
  v1::DaemonMessage message;
  message.mutable_begin_lease()->set_lease_id(lease.value);
  message.mutable_begin_lease()->set_session_id(session->id.value);
  message.mutable_begin_lease()->set_learn(session->learning.BeginLease());
  executors_.Run(
      session->On(gpu), message, [this, session, lease, finish](const OperationResult& result) {
        InstanceLease* const begun = LeaseOf(*session, lease);
        if (begun && result.status.ok()) {
          Offer(session, *begun);
        } else if (begun && !result.is_executor_lost) {
          spdlog::error("session {}: no lease: {}", session->id.value, result.status.ToString());
          Deny(session, "its executor refused the lease");
          EndParticipant(session, lease);
        }
        finish();
      });
}

void LeaseService::Offer(const SessionPtr& session, InstanceLease& lease) {
  const GpuIndex gpu = GpuOf(lease, *session);
  const ExecutorKey executor = session->On(gpu);
  // With any lease, the session's request is settled.
  const RequestId waiting = implicit_.Take(*session);
  session->lease.is_wanted = false;
  const bool replays = session->image.is_replay_due();
  session->image.NoteLease(lease.id, lease.is_explicit);
  if (session->journal) session->journal->NoteUnsaved(*session);
  for (const SessionPtr& owner : sessions_.OwnersOpenedBy(*session)) {
    owner->image.NoteLease(lease.id, lease.is_explicit);
  }
  lease.participants[session->id] = ParticipantState::kOffered;
  session->link->Send(
      wire::LeaseGrant{lease.id.value, lease.is_explicit, gpu.value, executors_.EpochOf(executor),
                       executors_.RegistrationOf(executor).socket_path(),
                       session->memory.files->checkpoint().saved_command(), replays});
  const LeaseId id = lease.id;
  loop_.RunAt(loop_.Now() + PatienceWith(*session, lease), [this, session, id] {
    CloseUnless(session->id, id, ParticipantState::kAcked, "it did not take its lease in time");
  });
  if (lease.is_revoked) RevokeParticipant(session, lease);
  if (waiting && lease.requests.count(waiting) == 0) events_.Feed(scheduler::RequestGone{waiting});
}

void LeaseService::Revoke(FunctionInstance& instance) {
  if (!instance.lease) return;
  instance.lease->is_revoked = true;
  if (instance.lease->participants.empty()) return End(instance);
  for (const SessionPtr& session : sessions_.Of(instance)) {
    if (instance.lease->participants.count(session->id)) {
      RevokeParticipant(session, *instance.lease);
    }
  }
}

void LeaseService::RevokeParticipant(const SessionPtr& session, InstanceLease& lease) {
  const ParticipantState state = lease.participants.at(session->id);
  // A participant in preparation is revoked right after the offer.
  if (state != ParticipantState::kOffered && state != ParticipantState::kAcked) return;
  session->link->Send(wire::LeaseRevoke{lease.id.value});
  loop_.RunAt(loop_.Now() + PatienceWith(*session, lease), [this, session, id = lease.id] {
    CloseUnless(session->id, id, ParticipantState::kReturning,
                "it did not give its lease back in time");
  });
}

TimePoint LeaseService::LimitOf(const ClientSession& session, const InstanceLease& lease) const {
  // A program outside of requests has no limit.
  if (!lease.is_explicit) return TimePoint::max();
  return lease.last_request + instances_.Of(session).config().held_at_most();
}

Duration LeaseService::PatienceWith(const ClientSession& session,
                                    const InstanceLease& lease) const {
  const TimePoint limit = LimitOf(session, lease);
  if (limit == TimePoint::max()) return kSessionPatience;
  // Whoever sets run_limit lets a request have the GPU for so long.
  const bool may_run_on =
      !lease.requests.empty() && instances_.Of(session).config().run_limit > Duration::zero();
  const Duration longest = may_run_on ? Duration::max() : kSessionPatience;
  return std::clamp(limit + kOverduePatience - loop_.Now(), kOverduePatience, longest);
}

void LeaseService::CloseUnless(SessionId session, LeaseId lease, ParticipantState passed,
                               const char* reason) {
  const SessionPtr found = sessions_.Find(session);
  const InstanceLease* const current = found ? LeaseOf(*found, lease) : nullptr;
  if (!current || current->participants.at(session) >= passed) return;
  found->is_overdue = loop_.Now() >= LimitOf(*found, *current);
  handlers_.close(found, reason);
}

void LeaseService::Acknowledge(const SessionPtr& session, const wire::LeaseAck& ack) {
  InstanceLease* const lease = LeaseOf(*session, LeaseId{ack.lease_id});
  if (!lease || lease->participants.at(session->id) != ParticipantState::kOffered) return;
  lease->participants[session->id] = ParticipantState::kAcked;
  const std::chrono::duration<double, std::micro> since = loop_.Now() - lease->since;
  spdlog::debug("lease {}: session {} has taken it after {:.0f} us", lease->id.value,
                session->id.value, since.count());
  handlers_.taken(instances_.Of(*session));
}

void LeaseService::Return(const SessionPtr& session, const wire::LeaseReturned& returned) {
  const LeaseId id{returned.lease_id};
  InstanceLease* const lease = LeaseOf(*session, id);
  if (!lease) return;
  ParticipantState& state = lease->participants.at(session->id);
  if (state != ParticipantState::kOffered && state != ParticipantState::kAcked) return;
  state = ParticipantState::kReturning;
  const GpuIndex gpu = GpuOf(*lease, *session);
  session->steps.Add([this, session, id, gpu](const StepQueue::Finish& finish) {
    if (!LeaseOf(*session, id)) return finish();
    EndOnExecutor(session, id, gpu, finish);
  });
}

void LeaseService::EndOnExecutor(const SessionPtr& session, LeaseId lease, GpuIndex gpu,
                                 const StepQueue::Finish& finish) {
  executors_.Run(session->On(gpu), EndLeaseMessage(*session, lease),
                 [this, session, lease, gpu, finish](const OperationResult& result) {
                   if (!result.status_unless_lost().ok()) {
                     // Work still running may write into the next function's memory: kill the
                     // executor, and the lease with it. A replay would come to the same work.
                     if (instances_.Of(*session).config().survives() && !session->is_lost) {
                       LoseSession(session, {lease.value, kCudaErrorDevicesUnavailable, true,
                                             "its work on the GPU did not end"});
                     }
                     if (absl::IsDeadlineExceeded(result.status)) NoteEndless(*session);
                     executors_.Kill(session->On(gpu), absl::StrCat("a lease did not end: ",
                                                                    result.status.ToString()));
                   }
                   if (result.status.ok()) {
                     if (const InstanceLease* const ended = LeaseOf(*session, lease)) {
                       session->learning.EndLease(result.learned, ended->is_explicit);
                     }
                     EndParticipant(session, lease);
                   }
                   finish();
                 });
}

void LeaseService::NoteEndless(const ClientSession& session) {
  if (handlers_.endless) handlers_.endless(session);
}

InstanceLease* LeaseService::LeaseOf(const ClientSession& session, LeaseId lease) const {
  if (!session.lease.id || session.lease.id != lease) return nullptr;
  std::optional<InstanceLease>& held = instances_.Of(session).lease;
  return held && held->id == lease ? &*held : nullptr;
}

void LeaseService::EndParticipant(const SessionPtr& session, LeaseId lease) {
  InstanceLease* const ended = LeaseOf(*session, lease);
  session->lease.id = {};
  if (!ended) return;
  ended->participants.erase(session->id);
  FunctionInstance& instance = instances_.Of(*session);
  if (ended->participants.empty()) {
    End(instance);
  } else {
    handlers_.taken(instance);  // maybe this acknowledgement was the last missing
  }
  RequestAgain(session);
}

void LeaseService::Account(FunctionInstance& instance, const InstanceLease& lease) {
  const Duration held = loop_.Now() - lease.since;
  for (const GpuIndex gpu : lease.gpus) {
    instance.totals.gpu_seconds += ToSeconds(held);
    busy_seconds_[gpu] += ToSeconds(held);
    telemetry_.OnLeaseEnded(instance.config().name, gpu, held, lease.is_explicit);
  }
}

double LeaseService::BusySecondsOf(GpuIndex gpu) const {
  const auto busy = busy_seconds_.find(gpu);
  return busy == busy_seconds_.end() ? 0 : busy->second;
}

void LeaseService::End(FunctionInstance& instance) {
  const InstanceLease lease = *std::exchange(instance.lease, std::nullopt);
  Account(instance, lease);
  // Before any action that the scheduler may decide now for the same session.
  for (const SessionPtr& session : sessions_.AbleOf(instance)) {
    // A write-back that this lease has interrupted left an image with which no replay can begin.
    const bool is_half_written =
        instance.config().survives() && !session->memory.files->checkpoint().is_whole();
    if (!session->image.unsaved_lease() && !is_half_written) continue;
    swaps_.SwapOut(session, GpuOf(lease, *session), WriteBackReason::kCheckpoint,
                   [](const OperationResult&) {});
  }
  events_.Feed(scheduler::LeaseEnded{instance.id});
  // No request joins a lease that the scheduler knows to be over.
  handlers_.ended(lease);
}

LeaseService::Lost LeaseService::Lose(FunctionInstance& instance) {
  Lost lost = {*std::exchange(instance.lease, std::nullopt), {}, false, true};
  Account(instance, lost.lease);
  for (const auto& [id, state] : lost.lease.participants) {
    const SessionPtr session = sessions_.Find(id);
    lost.is_own_fault |= session->is_lost;
    if (state != ParticipantState::kPreparing) {
      lost.harmed.push_back(id);
      lost.is_replayed &= !session->is_lost && MayReplay(*session);
    }
    LoseParticipant(session, state, lost.lease);
  }
  EndOnSurvivors(instance, lost.lease);
  return lost;
}

void LeaseService::EndOnSurvivors(const FunctionInstance& instance, const InstanceLease& lease) {
  for (const auto& [id, state] : lease.participants) {
    const SessionPtr session = sessions_.Find(id);
    const GpuIndex gpu = GpuOf(lease, *session);
    if (instance.shards.size() == 1 || !executors_.IsAttached(session->On(gpu))) continue;
    session->steps.Add([this, session, gpu, id = lease.id](const StepQueue::Finish& finish) {
      executors_.Run(session->On(gpu), EndLeaseMessage(*session, id),
                     [this, session, gpu, finish](const OperationResult& result) {
                       if (absl::IsDeadlineExceeded(result.status)) {
                         executors_.Kill(session->On(gpu), "the work of a lost lease does not end");
                       }
                       finish();
                     });
    });
  }
}

void LeaseService::LoseParticipant(const SessionPtr& session, ParticipantState state,
                                   const InstanceLease& lease) {
  session->lease.id = {};
  if (state == ParticipantState::kPreparing) {
    // Once the scheduler knows, too, that the executor has gone.
    return loop_.Post([this, session] { RequestAgain(session); });
  }
  if (session->is_lost) return;
  if (MayReplay(*session)) {
    session->image.NoteReplayDue();
    wire::LeaseLost lost = {lease.id.value, kCudaErrorDevicesUnavailable, false,
                            "the executor of the GPU has died; another one replays"};
    lost.replays = true;
    return session->link->Send(lost);
  }
  const bool is_sticky = session->image.unsaved_lease() == lease.id || LosesState(*session);
  const wire::LeaseLost lost = {lease.id.value, kCudaErrorDevicesUnavailable, is_sticky,
                                "the executor of the GPU has died"};
  if (is_sticky) return LoseSession(session, lost);
  session->link->Send(lost);
}

}  // namespace torpor::server
