#pragma once

#include "absl/status/status.h"
#include "server/executor/executor_loop.h"
#include "server/settings/executor_settings.h"

namespace torpor::executor {

// Owns the GPU until there is a reason to end, and then ends the process with an ExitStatus.
// Returns only if the executor could not start.
absl::Status RunExecutor(const server::ExecutorSettings& settings);

}  // namespace torpor::executor
