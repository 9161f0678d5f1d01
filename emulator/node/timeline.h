#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace torpor::emulator {

// When something that serves one at a time, such as a link, is free again. Lies in memory that
// processes share: one of them may be killed at any moment and has then reserved at most what it
// asked for last. Lock-free.
class Timeline {
 public:
  // Reserves `duration` behind all that is reserved, but not before `ready`; gives the end.
  TimePoint Reserve(TimePoint ready, Duration duration) {
    const std::int64_t earliest = ready.time_since_epoch().count();
    std::int64_t free_at = free_at_ns_.load(std::memory_order_relaxed);
    std::int64_t end = 0;
    do {
      end = std::max(free_at, earliest) + duration.count();
    } while (!free_at_ns_.compare_exchange_weak(free_at, end, std::memory_order_relaxed));
    return TimePoint(Duration(end));
  }

 private:
  std::atomic<std::int64_t> free_at_ns_{0};
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

}  // namespace torpor::emulator
