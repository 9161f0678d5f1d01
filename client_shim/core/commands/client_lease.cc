#include "client_shim/core/commands/client_lease.h"

#include <algorithm>
#include <utility>

namespace torpor::shim {

LeaseActions ClientLease::Need() {
  LeaseActions actions;
  if (state_ != State::kNone) return actions;
  state_ = State::kRequested;
  actions.requests = true;
  return actions;
}

cudaError_t ClientLease::FailCall(bool tells_program, bool is_quiet, LeaseMoment at,
                                  LeaseActions& actions) {
  const cudaError_t error = error_;
  if (!is_quiet) failed_a_call_ = true;
  if (!is_quiet && tells_program) program_knows_ = true;
  SettleLoss(at, actions);
  return error;
}

void ClientLease::NoteAnswer(std::uint64_t use) { uses_answered_ = std::max(uses_answered_, use); }

cudaError_t ClientLease::TakeLoss(LeaseMoment at, LeaseActions& actions) {
  if (state_ != State::kLost || program_knows_) return cudaSuccess;
  const cudaError_t error = error_;
  program_knows_ = true;
  SettleLoss(at, actions);
  return error;
}

// Forgets everything about the previous lease.
void ClientLease::Begin(std::uint64_t id, bool is_explicit, std::uint64_t uses) {
  state_ = State::kNone;
  id_ = id;
  is_explicit_ = is_explicit;
  uses_answered_ = uses;
  error_ = cudaSuccess;
  program_knows_ = failed_a_call_ = daemon_knows_ = false;
}

LeaseActions ClientLease::Grant(std::uint64_t id, bool is_explicit, LeaseMoment at) {
  LeaseActions actions;
  KeepUntoldLoss(at.uses, actions);
  Begin(id, is_explicit, at.uses);
  state_ = State::kHeld;
  held_time_.Begin(at.now);
  uses_at_check_ = at.uses;
  next_idle_check_ = at.now + idle_period_;
  actions.wakes = true;
  return actions;
}

LeaseActions ClientLease::GrantUnreachable(std::uint64_t id, bool is_explicit, LeaseMoment at) {
  LeaseActions actions;
  KeepUntoldLoss(at.uses, actions);
  Begin(id, is_explicit, at.uses);
  state_ = State::kLost;
  error_ = cudaErrorDevicesUnavailable;
  daemon_knows_ = true;
  actions.returned = id;
  actions.drops_work = true;
  actions.wakes = true;
  return actions;
}

LeaseActions ClientLease::Revoke(std::uint64_t id, LeaseMoment at) {
  LeaseActions actions;
  if (id != id_) return actions;  // crossed our LeaseReturned
  if (state_ == State::kHeld) {
    state_ = State::kReturning;
    actions.begins_return = true;
  } else if (state_ == State::kLost) {
    if (!daemon_knows_) actions.returned = id_;
    End(at, actions);
  }
  return actions;
}

LeaseActions ClientLease::NoteDrained(LeaseMoment at) {
  LeaseActions actions;
  actions.returned = id_;
  End(at, actions);
  return actions;
}

LeaseActions ClientLease::NoteLossByDaemon(cudaError_t error, LeaseMoment at) {
  LeaseActions actions;
  daemon_knows_ = true;
  error_ = error;
  SettleLoss(at, actions);
  return actions;
}

LeaseActions ClientLease::NoteDaemonGone(LeaseMoment at) {
  LeaseActions actions;
  if (state_ != State::kLost) return actions;
  const bool was_explicit = std::exchange(is_explicit_, false);
  daemon_knows_ = true;
  SettleLoss(at, actions);
  actions.ends_request = was_explicit;
  return actions;
}

LeaseActions ClientLease::ExecutorLost(cudaError_t error, bool program_told, LeaseMoment at) {
  LeaseActions actions;
  const bool was_returning = state_ == State::kReturning;
  held_time_.End(at.now);
  state_ = State::kLost;
  error_ = error;
  program_knows_ = program_told;
  actions.drops_work = true;
  actions.wakes = true;
  if (!was_returning) {
    SettleLoss(at, actions);
  } else {
    if (!daemon_knows_) actions.returned = id_;
    End(at, actions);
  }
  return actions;
}

void ClientLease::Suspend(LeaseMoment at) {
  held_time_.End(at.now);
  state_ = State::kSuspended;
}

LeaseActions ClientLease::EndSuspended(LeaseMoment at) {
  LeaseActions actions;
  actions.ends_request = is_explicit_;
  Begin(0, false, at.uses);
  actions.wakes = true;
  return actions;
}

LeaseActions ClientLease::Abandon(LeaseMoment at) {
  LeaseActions actions = state_ == State::kSuspended ? EndSuspended(at) : LeaseActions{};
  actions.drops_work = true;
  actions.wakes = true;
  return actions;
}

std::optional<ClientLease::Time> ClientLease::NextIdleCheck(Time now) {
  if (is_explicit_ || (state_ != State::kHeld && state_ != State::kLost)) return std::nullopt;
  if (next_idle_check_ <= now - idle_period_) next_idle_check_ = now;
  return next_idle_check_;
}

LeaseActions ClientLease::CheckIdle(bool is_busy, LeaseMoment at) {
  LeaseActions actions;
  if (is_explicit_ || at.now < next_idle_check_) return actions;
  next_idle_check_ = at.now + idle_period_;
  if (state_ == State::kLost && !daemon_knows_) {
    // The connection broke and the daemon has had nothing to say about that.
    daemon_knows_ = true;
    actions.returned = id_;
    SettleLoss(at, actions);
  } else if (state_ == State::kHeld && at.uses == uses_at_check_ && !is_busy) {
    state_ = State::kReturning;
    actions.begins_return = true;
  } else {
    uses_at_check_ = at.uses;
  }
  return actions;
}

// Ends the lease: the next call requests another one.
void ClientLease::End(LeaseMoment at, LeaseActions& actions) {
  actions.ends_request = is_explicit_;
  held_time_.End(at.now);
  KeepUntoldLoss(at.uses, actions);
  Begin(0, false, 0);
  actions.wakes = true;
}

// Commands behind the last good answer are lost. If no call has returned the loss, the next
// synchronising call must.
void ClientLease::KeepUntoldLoss(std::uint64_t uses, LeaseActions& actions) const {
  if (state_ != State::kLost || program_knows_ || failed_a_call_) return;
  if (uses != uses_answered_) actions.untold = error_;
}

// Ends a lost implicit lease that both program and daemon know of. Only the daemon ends a lost
// explicit one.
void ClientLease::SettleLoss(LeaseMoment at, LeaseActions& actions) {
  if (state_ != State::kLost || is_explicit_) return;
  if (program_knows_ && daemon_knows_) End(at, actions);
}

}  // namespace torpor::shim
