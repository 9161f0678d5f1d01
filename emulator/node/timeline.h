#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace torpor::emulator {

// The time when a resource that serves one request at a time, such as a link, is free again. Lies
// in memory shared by processes: a process killed at any moment leaves at most its last
// reservation. Lock-free.
class Timeline {
 public:
  // Reserves `duration` after all reservations, but not before `ready`; returns the end.
  TimePoint Reserve(TimePoint ready, Duration duration) {
    return ReserveUntil(ready, [duration](TimePoint begin) { return begin + duration; });
  }
  // Likewise; `end_of` returns the end for a beginning. May be called several times.
  template <typename EndOf>
  TimePoint ReserveUntil(TimePoint ready, const EndOf& end_of) {
    const std::int64_t earliest = ready.time_since_epoch().count();
    std::int64_t free_at = free_at_ns_.load(std::memory_order_relaxed);
    std::int64_t end = 0;
    do {
      end = end_of(TimePoint(Duration(std::max(free_at, earliest)))).time_since_epoch().count();
    } while (!free_at_ns_.compare_exchange_weak(free_at, end, std::memory_order_relaxed));
    return TimePoint(Duration(end));
  }

 private:
  std::atomic<std::int64_t> free_at_ns_{0};
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

}  // namespace torpor::emulator
