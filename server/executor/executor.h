#pragma once

#include "absl/status/status.h"
#include "server/executor/executor_loop.h"
#include "server/settings/executor_settings.h"

namespace torpor::executor {

// Owns the GPU and runs until the executor must end, then exits the process with an ExitStatus.
// Returns only if the executor could not start.
absl::Status RunExecutor(const server::ExecutorSettings& settings);

}  // namespace torpor::executor
