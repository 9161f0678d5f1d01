#pragma once

#include <chrono>

namespace torpor {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// A source of time. Tests and the simulator supply fakes.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
};

// CLOCK_MONOTONIC: comparable between the processes of one machine.
class SteadyClock final : public Clock {
 public:
  TimePoint Now() const override { return std::chrono::steady_clock::now(); }
};

inline double ToSeconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}
inline double ToMilliseconds(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace torpor
