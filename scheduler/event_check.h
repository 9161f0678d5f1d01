#pragma once

#include <string>

#include "scheduler/scheduler.h"

// Checks events from an untrusted source, such as a log: a scheduler expects known instances,
// functions and requests, and numbers whose sums do not overflow.
namespace torpor::scheduler {

// Returns what is wrong in words; empty if the scheduler accepts the argument.
std::string WhatIsWrong(const SchedulerOptions& options);
std::string WhatIsWrong(const Event& event, TimePoint when, const Scheduler& scheduler);

}  // namespace torpor::scheduler
