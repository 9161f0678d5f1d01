#pragma once

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "server/supervisor/restart_pauses.h"

namespace torpor::server {

// Decides when a process that is to run for ever is started, asked to end and killed. Pure: the
// owner does what Due says, and tells what has happened.
class ProcessLife {
 public:
  enum class Action {
    kNone,
    kStart,      // then tell OnStarted or OnEnded
    kTerminate,  // ask the process to end
    kKill,
  };
  enum class State {
    kPausing,  // no process; one is started when the pause is over
    kRunning,
    kStopping,  // the process was asked to end, or will be at once
    kOver,      // no process, and none follows
  };

  // The first start is due at `now`.
  ProcessLife(const RestartPauses::Options& pauses, TimePoint now) : pauses_(pauses), next_(now) {}

  State state() const { return state_; }
  // Starts after the first. Starts that Restart has asked for count, too.
  unsigned restarts() const { return restarts_; }

  // What is to be done now; each action is returned once.
  Action Due(TimePoint now) {
    if (next_ == TimePoint::max() || now < next_) return Action::kNone;
    next_ = TimePoint::max();
    if (state_ == State::kPausing) return Action::kStart;
    if (state_ != State::kStopping) return Action::kNone;
    if (was_asked_) return Action::kKill;
    was_asked_ = true;
    next_ = now + grace_;
    return Action::kTerminate;
  }
  // When Due has something to do if nothing happens before; max: never.
  TimePoint next() const { return next_; }

  // The process runs since `started`, or was found running.
  void OnStarted(TimePoint started) {
    if (std::exchange(has_started_, true)) ++restarts_;
    state_ = State::kRunning;
    started_ = started;
    next_ = TimePoint::max();
  }
  // The process has ended, or could not be started.
  void OnEnded(TimePoint now) {
    const bool is_last = state_ == State::kStopping && !is_wanted_again_;
    // A restart by request is not paced.
    const bool is_asked_for = state_ == State::kStopping && !is_faulty_;
    const Duration run = state_ == State::kPausing ? Duration{} : now - started_;
    state_ = is_last ? State::kOver : State::kPausing;
    next_ = is_last ? TimePoint::max() : now + (is_asked_for ? Duration{} : pauses_.Next(run));
    was_asked_ = is_wanted_again_ = is_faulty_ = false;
  }

  // Another program is to run from the next start on, which is due at once if there is no process.
  void Renew(TimePoint now) {
    pauses_.Forget();
    if (state_ == State::kPausing) next_ = std::min(next_, now);
  }

  // Ends the process for good, by force once `grace` has passed.
  void Stop(TimePoint now, Duration grace) {
    is_wanted_again_ = false;
    End(now, grace, State::kOver);
  }
  // Ends the process and starts another. `is_faulty`: for a fault of the process, and so paced like
  // an end without request.
  void Restart(TimePoint now, Duration grace, bool is_faulty) {
    is_wanted_again_ = true;
    is_faulty_ = is_faulty;
    End(now, grace, State::kPausing);
  }

 private:
  void End(TimePoint now, Duration grace, State without_process) {
    if (state_ == State::kPausing || state_ == State::kOver) {
      // A pause under way is not cut short: nothing else paces failing starts.
      if (without_process == State::kOver) next_ = TimePoint::max();
      if (without_process == State::kPausing && state_ == State::kOver) next_ = now;
      state_ = without_process;
      is_wanted_again_ = is_faulty_ = false;
      return;
    }
    grace_ = grace;
    if (state_ == State::kStopping) return;
    state_ = State::kStopping;
    next_ = now;
  }

  RestartPauses pauses_;
  State state_ = State::kPausing;
  TimePoint next_;
  TimePoint started_;
  Duration grace_{};
  unsigned restarts_ = 0;
  bool has_started_ = false;
  bool was_asked_ = false;        // to end
  bool is_wanted_again_ = false;  // after its end
  bool is_faulty_ = false;
};

}  // namespace torpor::server
