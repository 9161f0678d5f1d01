#pragma once

#include "base/clock.h"

namespace torpor::scheduler {

// Numbers in the policies that an operator may change; the defaults are the paper's, but for the
// last.
struct PolicyConstants {
  // Algorithm 2: alpha before anything is known, in [0, 1], and the period after which it adapts.
  double alpha_start = 0.5;
  Duration alpha_period{std::chrono::seconds(40)};
  // A function is heavy if a run with the image from the host takes this many times as long as a
  // resident run; at least 1 (Table 4).
  double heavy_ratio = 1.3;
  // How long the outcome of a request counts. The paper's experiments are shorter; there nothing is
  // forgotten. What was an hour ago says little about how a function does now.
  Duration outcome_window{std::chrono::hours(1)};

  bool operator==(const PolicyConstants&) const = default;
};

// Bounds of the above.
inline constexpr Duration kMinAlphaPeriod = std::chrono::milliseconds(1);
inline constexpr Duration kMinOutcomeWindow = std::chrono::seconds(1);
inline constexpr double kMaxHeavyRatio = 1000;

}  // namespace torpor::scheduler
