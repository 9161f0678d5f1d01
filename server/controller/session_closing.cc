#include "server/controller/session_closing.h"

#include <spdlog/spdlog.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/controller/model/cuda_errors.h"
#include "server/controller/model/join.h"
#include "server/controller/model/session_journal.h"
#include "server/controller/session_opening.h"

namespace torpor::server {
namespace {

// For the work of a session that has held its GPU for too long.
constexpr std::uint64_t kOverduePatienceMs = 250;

// 0: the executor's own patience.
std::uint64_t PatienceMs(const ClientSession& session) {
  return session.is_overdue ? kOverduePatienceMs : 0;
}

}  // namespace

void TellEnd(const ClientSession& session, const std::string& reason) {
  if (session.state != ClientSession::State::kOpen || session.is_lost) return;
  session.link->Send(wire::LeaseLost{.lease_id = session.lease.id.value,
                                     .error = kCudaErrorDevicesUnavailable,
                                     .sticky = true,
                                     .message = reason});
}

void SessionClosing::Close(const SessionPtr& session, const std::string& reason) {
  using State = ClientSession::State;
  if (session->state == State::kClosing) return;
  const bool takes_siblings_along = session->state == State::kOpen || session->has_arena();
  TellEnd(*session, reason);
  session->state = State::kClosing;
  if (session->journal) session->journal->Close(*session);
  // A program that watches its memory sends inquiries again and again.
  const auto level = session->is_inquiry ? spdlog::level::debug : spdlog::level::info;
  spdlog::log(level, "{} closed: {}", Describe(*session), reason);
  session->link->Close(reason);
  implicit_.Withdraw(*session);
  saves_.OnClosed(*session);
  if (!session->memory.files) return Forget(session);
  // Waiting requests, and the ending lease's requests, go to another instance.
  health_.Check(instances_.Of(*session));
  if (takes_siblings_along) {
    for (const SessionPtr& sibling : sessions_.SiblingsOf(*session)) {
      Close(sibling, "another session of its process has closed");
    }
  }
  session->steps.Add([this, session](const StepQueue::Finish& finish) {
    Quiesce(session, [this, session, finish] {
      session->is_kept = session->shared.is_open();
      if (!session->is_kept) return Finish(session, finish);
      if (session->lease.id) leases_.EndParticipant(session, session->lease.id);
      finish();
    });
  });
}

void SessionClosing::Quiesce(const SessionPtr& session, const TaskLoop::Task& then) {
  Join join([then](const absl::Status&) { then(); });
  std::vector<SessionPtr> ended = sessions_.SiblingsOf(*session);
  if (!ended.empty() || session->shared.is_open()) ended.push_back(session);
  for (const SessionPtr& member : ended) {
    const InstanceLease* const lease = leases_.LeaseOf(*member, member->lease.id);
    if (!lease) continue;
    const GpuIndex gpu = GpuOf(*lease, *member);
    v1::DaemonMessage message;
    message.mutable_end_lease()->set_lease_id(lease->id.value);
    message.mutable_end_lease()->set_session_id(member->id.value);
    message.mutable_end_lease()->set_is_last(true);
    message.mutable_end_lease()->set_patience_ms(PatienceMs(*session));
    join.Add();
    // The lease may have ended already, or not have begun.
    const ExecutorKey executor = member->On(gpu);
    executors_.Run(
        executor, std::move(message), [this, executor, join](const OperationResult& result) {
          if (!absl::IsDeadlineExceeded(result.status)) return join.Done();
          executors_.KillAndAwait(
              executor, absl::StrCat("a session does not end: ", result.status.ToString()),
              [join](const OperationResult&) { join.Done(); });
        });
  }
  join.Done();
}

void SessionClosing::Finish(const SessionPtr& session, const StepQueue::Finish& finish) {
  // A source must not become another function's memory during the copy.
  if (session->image.source() && session->image.is_arriving()) {
    session->image.AfterArrival([this, session, finish] { Finish(session, finish); });
    return;
  }
  session->is_announced = false;
  CloseOnExecutors(session, [this, session, finish] {
    Forget(session);
    finish();
  });
}

void SessionClosing::CloseOnExecutors(const SessionPtr& session, const TaskLoop::Task& then) {
  Join join([then](const absl::Status&) { then(); });
  v1::DaemonMessage message;
  message.mutable_close_session()->set_session_id(session->id.value);
  message.mutable_close_session()->set_patience_ms(PatienceMs(*session));
  for (const ExecutorKey executor : executors_.AttachedOf(session->domain)) {
    join.Add();
    executors_.Run(
        executor, message, [this, session, executor, join](const OperationResult& result) {
          const absl::Status status = result.status_unless_lost();
          if (status.ok() || absl::IsNotFound(status)) return join.Done();
          if (session->is_overdue && absl::IsDeadlineExceeded(status))
            leases_.NoteEndless(*session);
          // Work still running uses memory and addresses that other sessions would get.
          executors_.KillAndAwait(
              executor, absl::StrCat(Describe(*session), " does not close: ", status.ToString()),
              [join](const OperationResult&) { join.Done(); });
        });
  }
  loop_.Post([join] { join.Done(); });
}

void SessionClosing::Forget(const SessionPtr& session) {
  session->image.Forget();
  swaps_.EndArrival(*session);  // ends copies under way
  if (session->lease.id) leases_.EndParticipant(session, session->lease.id);
  sessions_.Forget(*session);
  if (!session->memory.files) return;
  shared_.CloseAll(*session);
  const InstanceId shard = instances_.ShardOf(*session);
  instances_.Of(*session).sessions.erase(session->id);
  const Bytes charged = session->memory.device->occupied_bytes() - session->memory.growth.bytes;
  events_.Feed(scheduler::ImageShrunk{shard, charged});
  if (session->memory.spill.is_on_disk()) events_.Feed(scheduler::ImageSpilled{shard, false});
  storage_.Remove(*session);
}

}  // namespace torpor::server
