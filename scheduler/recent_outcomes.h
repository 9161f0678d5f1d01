#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "scheduler/policy_constants.h"

namespace torpor::scheduler {

// How many requests of a function ended in the last time, a window, and how many in time. Those of
// a sixth of the window are forgotten together, when the last is as old as the window.
class RecentOutcomes {
 public:
  explicit RecentOutcomes(Duration window = PolicyConstants().outcome_window) : window_(window) {}

  void Add(bool in_time, TimePoint now);
  // Forgets what is too old.
  void Forget(TimePoint now);
  // Forgets everything.
  void Clear();

  std::uint64_t finished() const { return finished_; }
  std::uint64_t in_time() const { return in_time_; }
  // When something is to be forgotten.
  std::optional<TimePoint> next_end() const;

 private:
  struct Part {
    TimePoint begin;
    std::uint64_t finished = 0;
    std::uint64_t in_time = 0;
  };

  Duration together() const { return window_ / 6; }

  Duration window_;
  std::vector<Part> parts_;  // the oldest first; at most seven
  std::uint64_t finished_ = 0;
  std::uint64_t in_time_ = 0;
};

}  // namespace torpor::scheduler
