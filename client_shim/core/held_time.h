#pragma once

#include <chrono>
#include <deque>
#include <optional>

namespace torpor::shim {

// How long of late something was held, by one holder at a time. Moments never go back.
class HeldTime {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kPeriod{1000};

  void Begin(Time now);
  void End(Time now);  // nothing if it is not held
  // Of the period up to `now`, the part in which it was held: 0 to 1.
  double RecentShare(Time now) const;

 private:
  struct Span {
    Time begin;
    Time end;
  };

  std::optional<Time> since_;  // nothing: it is not held
  std::deque<Span> earlier_;   // those that ended within a period before the last end
};

}  // namespace torpor::shim
