#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "base/clock.h"

namespace torpor::scheduler {

// The median of the last few durations: a single disturbed run does not show.
class RecentMedian {
 public:
  void Add(Duration duration);
  // Nothing before the first.
  std::optional<Duration> value() const { return value_; }

 private:
  static constexpr std::size_t kKept = 7;
  std::array<Duration, kKept> kept_{};
  std::size_t count_ = 0;
  std::size_t next_ = 0;
  std::optional<Duration> value_;
};

}  // namespace torpor::scheduler
