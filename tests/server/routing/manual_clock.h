#pragma once

#include "base/clock.h"

namespace torpor::server {

// A clock that the test moves.
class ManualClock final : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  void Advance(Duration duration) { now_ += duration; }

 private:
  TimePoint now_{std::chrono::hours(1)};
};

}  // namespace torpor::server
