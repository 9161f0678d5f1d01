#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace torpor::scheduler {

// For how long what became of a request counts: what was an hour ago says little about how a
// function does now. The paper's experiments are shorter; there it forgets nothing.
inline constexpr Duration kOutcomeWindow = std::chrono::hours(1);

// How many requests of a function ended in the last kOutcomeWindow, and how many in time. Those of
// ten minutes are forgotten together, when the last is that old.
class RecentOutcomes {
 public:
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
  static constexpr Duration kTogether = std::chrono::minutes(10);

  struct Part {
    TimePoint begin;
    std::uint64_t finished = 0;
    std::uint64_t in_time = 0;
  };

  std::vector<Part> parts_;  // the oldest first; at most seven
  std::uint64_t finished_ = 0;
  std::uint64_t in_time_ = 0;
};

}  // namespace torpor::scheduler
