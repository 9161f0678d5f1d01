#pragma once

#include <string>

#include "scheduler/scheduler.h"

// A scheduler is told only what can be: of what there is, and with numbers whose sums are numbers.
// For who gets its events from elsewhere, such as a log.
namespace torpor::scheduler {

// Why a scheduler cannot be told that, in words; empty: it can.
std::string WhatIsWrong(const Options& options);
std::string WhatIsWrong(const Event& event, TimePoint when, const NodeState& node);

}  // namespace torpor::scheduler
