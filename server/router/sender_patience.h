#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/units.h"

namespace torpor::server {

// How long the router waits for a client that sends a body: at most `stall` at a time, and in all
// at most `stall` and a second for every `bytes_per_second` bytes that came. So a client that drips
// is cut off. Pure.
class SenderPatience {
 public:
  SenderPatience(Duration stall, Bytes bytes_per_second)
      : stall_(stall), bytes_per_second_(bytes_per_second) {}

  // The time that the next bytes may take when `received` bytes have come; zero: none.
  Duration Left(Bytes received) const {
    const double earned = static_cast<double>(received) / static_cast<double>(bytes_per_second_);
    const double left = ToSeconds(stall_) + earned - ToSeconds(spent_);
    if (left >= ToSeconds(stall_)) return stall_;
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::max(left, 0.)));
  }
  // Notes that the router has waited.
  void Spend(Duration waited) { spent_ += waited; }

 private:
  const Duration stall_;
  const Bytes bytes_per_second_;
  Duration spent_{};
};

}  // namespace torpor::server
