#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace torpor {

// Returns how long poll(2) may wait, in milliseconds, so that the caller looks at the time again at
// `until` or, if that is more than a minute away, before. TimePoint::max(): any time (-1).
inline int PollTimeout(TimePoint until, TimePoint now) {
  if (until == TimePoint::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now);
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

}  // namespace torpor
