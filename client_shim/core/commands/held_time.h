#pragma once

#include <chrono>
#include <deque>
#include <optional>

namespace torpor::shim {

// Measures the share of recent time in which something was held, by one holder at a time. The times
// of all calls must not decrease. Not thread-safe.
class HeldTime {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kPeriod{1000};

  void Begin(Time now);
  void End(Time now);  // no effect unless held
  // The held fraction, 0 to 1, of the period that ends at `now`.
  double RecentShare(Time now) const;

 private:
  struct Span {
    Time begin;
    Time end;
  };

  std::optional<Time> since_;  // nullopt unless held
  std::deque<Span> earlier_;   // all that ended within a period before the last end
};

}  // namespace torpor::shim
