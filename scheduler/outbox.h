#pragma once

#include <optional>
#include <utility>

#include "scheduler/events.h"

namespace torpor::scheduler {

// The moment of the event being handled, and the actions decided on so far. Shared by the
// scheduler's parts; not thread-safe.
class Outbox {
 public:
  // Starts an event. Time never goes back: an earlier `now` counts as the last one.
  void Begin(TimePoint now);
  TimePoint now() const { return now_; }

  void Add(Action action) { actions_.push_back(std::move(action)); }
  // Asks for a TimePassed at `when`, unless an earlier one is on its way.
  void WakeAt(TimePoint when);
  // Returns the actions in the order of Add, and forgets them.
  Actions Take() { return std::exchange(actions_, {}); }

 private:
  TimePoint now_{};
  std::optional<TimePoint> wake_up_;  // the one on its way
  Actions actions_;
};

}  // namespace torpor::scheduler
