#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "client_shim/core/commands/held_time.h"

namespace torpor::shim {

// When a lease's event happens: the time, and how many commands the session has issued so far.
struct LeaseMoment {
  std::chrono::steady_clock::time_point now;
  std::uint64_t uses = 0;
};

// What the owner of a ClientLease does after an event, in the order of the members.
struct LeaseActions {
  bool requests = false;             // send LeaseRequest
  bool begins_return = false;        // append a drain to the batch and flush
  bool drops_work = false;           // the executor's unanswered work is lost: drop its traces here
  std::uint64_t returned = 0;        // send LeaseReturned for this lease; 0: send nothing
  bool ends_request = false;         // an explicit lease has ended
  cudaError_t untold = cudaSuccess;  // error that the next synchronising call must return
  bool wakes = false;                // wake the calls that wait for a lease or for room
};

// The life of a session's lease, apart from all effects: every function takes an event and returns
// the actions that the owner carries out. Not thread-safe.
//
// kNone -> kRequested (a call needs it) -> kHeld -> kReturning (revoked or idle: flushed, draining)
// -> kNone. A lease becomes kLost when its executor fails. Calls then fail with the lease's error
// until the daemon ends the lease; an implicit one, and one whose daemon is gone, ends only after a
// synchronising call has also told the program. An error that no call has told passes on to the
// next lease (`untold`). If the session can be replayed, the lease becomes kSuspended instead:
// calls wait until the daemon has ended the lease, and for the next.
class ClientLease {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class State { kNone, kRequested, kHeld, kReturning, kLost, kSuspended };

  // An implicit lease is returned after one to two periods of `idle_period` without a command.
  explicit ClientLease(std::chrono::milliseconds idle_period) : idle_period_(idle_period) {}

  State state() const { return state_; }
  std::uint64_t id() const { return id_; }  // 0 in kNone and kRequested
  bool is_explicit() const { return is_explicit_; }
  // Whether an executor serves the lease: kHeld or kReturning.
  bool HasExecutor() const { return state_ == State::kHeld || state_ == State::kReturning; }
  // Whether every command of earlier leases is complete: kNone or kRequested.
  bool IsDrained() const { return state_ == State::kNone || state_ == State::kRequested; }

  // A call needs the lease. Requests one in kNone.
  LeaseActions Need();
  // A call meets a lost lease; requires kLost. Returns the lease's error. `tells_program` if the
  // call synchronises. `is_quiet` if the program does not see the call's result.
  cudaError_t FailCall(bool tells_program, bool is_quiet, LeaseMoment at, LeaseActions& actions);
  // A synchronising call succeeded as command number `use`: losses up to there need no telling.
  void NoteAnswer(std::uint64_t use);
  // Returns the error of a lost lease once, unless the program was told before; else cudaSuccess.
  cudaError_t TakeLoss(LeaseMoment at, LeaseActions& actions);

  // The daemon grants lease `id`; requires !HasExecutor().
  LeaseActions Grant(std::uint64_t id, bool is_explicit, LeaseMoment at);
  // As Grant, with an executor that cannot be reached: the new lease is returned and kLost.
  LeaseActions GrantUnreachable(std::uint64_t id, bool is_explicit, LeaseMoment at);
  // The daemon wants lease `id` back. Ignores the id of an earlier lease.
  LeaseActions Revoke(std::uint64_t id, LeaseMoment at);
  // The executor has completed everything; requires kReturning.
  LeaseActions NoteDrained(LeaseMoment at);
  // The daemon has ended the present lease. The owner reports ExecutorLost too if HasExecutor().
  LeaseActions NoteLossByDaemon(cudaError_t error, LeaseMoment at);
  // The daemon is gone, and nobody is left to end a lost lease: the program's knowledge suffices.
  LeaseActions NoteDaemonGone(LeaseMoment at);
  // The executor is gone, and another one is to replay; requires HasExecutor().
  void Suspend(LeaseMoment at);
  // The daemon has ended a suspended lease; requires kSuspended.
  LeaseActions EndSuspended(LeaseMoment at);
  // The session is lost, with all work that has no answer; requires !HasExecutor().
  LeaseActions Abandon(LeaseMoment at);
  // The executor is gone; requires HasExecutor(). `program_told`: a waiting call returns `error`.
  LeaseActions ExecutorLost(cudaError_t error, bool program_told, LeaseMoment at);

  // When CheckIdle is due next; nullopt while the lease cannot become idle.
  std::optional<Time> NextIdleCheck(Time now);
  // Returns an idle implicit lease; tells a daemon that does not know of a loss. `is_busy`:
  // commands are batched or unanswered.
  LeaseActions CheckIdle(bool is_busy, LeaseMoment at);

  // The fraction of the last second in which a lease was held, 0 to 1.
  double RecentShare(Time now) const { return held_time_.RecentShare(now); }

 private:
  void Begin(std::uint64_t id, bool is_explicit, std::uint64_t uses);
  void End(LeaseMoment at, LeaseActions& actions);
  void KeepUntoldLoss(std::uint64_t uses, LeaseActions& actions) const;
  void SettleLoss(LeaseMoment at, LeaseActions& actions);

  const std::chrono::milliseconds idle_period_;
  State state_ = State::kNone;
  std::uint64_t id_ = 0;
  bool is_explicit_ = false;
  std::uint64_t uses_answered_ = 0;  // uses at the grant or at the last good answer

  // In kLost:
  cudaError_t error_ = cudaSuccess;
  bool program_knows_ = false;  // a synchronising call has returned the error
  bool failed_a_call_ = false;  // any call has returned the error
  bool daemon_knows_ = false;   // the daemon has ended the lease, or was told of its loss

  HeldTime held_time_;
  Time next_idle_check_;
  std::uint64_t uses_at_check_ = 0;
};

}  // namespace torpor::shim
