#pragma once

#include "scheduler/event_log.h"
#include "scheduler/setup.h"
#include "server/config/config.h"

namespace torpor::server {

// Returns the configured policies and options.
scheduler::Setup SetupOf(const Config& config);

// The same, for the first line of an event log.
scheduler::EventLogHeader EventLogHeaderOf(const Config& config);

}  // namespace torpor::server
