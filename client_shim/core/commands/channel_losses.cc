#include <poll.h>

#include <chrono>
#include <string>
#include <thread>

#include "client_shim/core/commands/command_channel.h"

// The parts of CommandChannel that deal with the loss of executors and of torpord.
namespace torpor::shim {
namespace {

constexpr std::chrono::milliseconds kLastWordsPoll{1};

}  // namespace

void CommandChannel::OnLost(const wire::LeaseLost& lost) {
  const auto error = lost.error == 0 ? cudaErrorUnknown : static_cast<cudaError_t>(lost.error);
  Lock lock(mutex_);
  if (lost.sticky) parts_.health.SetSticky(error);
  if (lost.sticky && lost.lease_id == lease_.id() && lease_link_)
    AwaitLastWords(lock, ExecutorLinkPtr(lease_link_));
  if (lost.lease_id == lease_.id() && lease_.id() != 0) {
    parts_.log.Warn("the GPU was lost: " + lost.message);
    // Suspends the lease.
    if (lost.replays && lease_link_) BreakLink(ExecutorLinkPtr(lease_link_), error, lost.message);
    if (lease_.state() == ClientLease::State::kSuspended) {
      if (lost.replays) {
        EndSuspension();
      } else {
        FailReplay(lost.message);
      }
    } else {
      CarryOut(lease_.NoteLossByDaemon(error, Moment()));
      if (lease_link_) Break(ExecutorLinkPtr(lease_link_), error, lost.message);
    }
  } else if (lost.sticky) {
    parts_.log.Warn("the GPU memory was lost: " + lost.message);
  }
  NotifyAll();
}

// An executor that has lost its context to this session's work answers the waiting calls with the
// driver's description of the failure, and ends. The daemon's message may arrive before.
void CommandChannel::AwaitLastWords(Lock& lock, const ExecutorLinkPtr& link) {
  constexpr std::chrono::seconds kPatience{1};
  const Time until = std::chrono::steady_clock::now() + kPatience;
  while (link->HasWaiter() && !link->is_closed() && std::chrono::steady_clock::now() < until) {
    // The waiting thread reads. Of the end of a ring's connection only this one hears.
    lock.unlock();
    std::this_thread::sleep_for(kLastWordsPoll);
    lock.lock();
    link->OnEvents(POLLIN);
  }
}

void CommandChannel::BreakLink(const ExecutorLinkPtr& link, cudaError_t error,
                               const std::string& why) {
  if (!links_.Remove(link)) return;
  parts_.log.Debug("executor connection: " + why);
  // An executor that lost its context says so on the completion page before the connection ends.
  if (parts_.health.IsOpen()) {
    if (const cudaError_t sticky = parts_.health.Check(); sticky != cudaSuccess) error = sticky;
  }
  // An obstacle to the replay counts when the loss is certain: more may have been saved than the
  // client knows.
  const bool suspends =
      lease_link_ == link && options_.replays && parts_.health.sticky() == cudaSuccess;
  if (suspends) return Suspend(link, why);
  Break(link, error, why);
}

void CommandChannel::Break(const ExecutorLinkPtr& link, cudaError_t error, const std::string& why) {
  links_.Remove(link);
  const bool tells_program = link->Break(error, why);
  if (lease_link_ != link) return;
  replay_.DropCheckpoint();
  CarryOut(lease_.ExecutorLost(error, tells_program, Moment()));
  if (replay_.daemon_is_gone()) CarryOut(lease_.NoteDaemonGone(Moment()));
}

// Executors may live on, and serve the lease that there is.
void CommandChannel::OnDaemonGone() {
  const Lock lock(mutex_);
  replay_.NoteDaemonGone();
  CarryOut(lease_.NoteDaemonGone(Moment()));
}

void CommandChannel::OnResumed(const wire::ResumeReply& resumed) {
  const Lock lock(mutex_);
  // Executors have let go of the session, or have ended.
  for (const ExecutorLinkPtr& link : links_.All())
    BreakLink(link, cudaErrorDevicesUnavailable, "torpord was started anew");
  replay_.NoteDaemonBack();
  replay_.TrimTo(resumed.saved_command);
  if (lease_.state() == ClientLease::State::kSuspended) return EndSuspension();
  if (lease_.state() == ClientLease::State::kRequested) parts_.daemon.Send(wire::LeaseRequest{});
}

void CommandChannel::OnDaemonLost() {
  const Lock lock(mutex_);
  for (const ExecutorLinkPtr& link : links_.All())
    BreakLink(link, cudaErrorDevicesUnavailable, "the daemon is lost");
  replay_.FailUnanswered(parts_.health.sticky());
  CarryOut(lease_.Abandon(Moment()));
}

// Waiting calls go on waiting. The batch counts as sent.
void CommandChannel::Suspend(const ExecutorLinkPtr& link, const std::string& why) {
  const std::deque<PendingReply> unanswered = link->Suspend(why);
  lease_.Suspend(Moment());
  lease_link_ = nullptr;
  replay_.Suspend(unanswered, batch_);
  NotifyAll();
  parts_.wake();
}

// The daemon knows, too: the work is replayed, or the session fails. The session asks for another
// GPU at once: the program may only look at the completion page.
void CommandChannel::EndSuspension() {
  const std::string obstacle = replay_.record().obstacle();
  if (replay_.owes_work() && !obstacle.empty()) return FailReplay(obstacle);
  CarryOut(lease_.EndSuspended(Moment()));
  if (replay_.owes_work()) CarryOut(lease_.Need());
}

void CommandChannel::FailReplay(const std::string& why) {
  if (!replay_.Fail(why)) return;
  if (lease_link_)
    BreakLink(ExecutorLinkPtr(lease_link_), cudaErrorDevicesUnavailable, why);
  else
    CarryOut(lease_.Abandon(Moment()));
}

}  // namespace torpor::shim
