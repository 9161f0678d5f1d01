#pragma once

#include "scheduler/node_state.h"

namespace torpor::scheduler {

// Returns the function's required request count (RRC; the paper, section 5.2): how many requests in
// a row must meet the deadline until the function complies, by recent outcomes. Negative: how many
// late requests the function can afford.
inline double RequiredCount(const FunctionState& function) {
  const double p = function.objective.percentile;
  const auto finished = static_cast<double>(function.recent.finished());
  const auto in_time = static_cast<double>(function.recent.in_time());
  return (p * finished - in_time) / (1 - p);
}

}  // namespace torpor::scheduler
