#pragma once

#include "absl/status/status.h"
#include "server/settings/executor_settings.h"

namespace torpor::executor {

// Owns the GPU's memory for images, for the executors that connect to `pool_socket`, and exits the
// process when none needs the memory any more. Returns only if the owner could not start.
absl::Status RunPoolOwner(const server::ExecutorSettings& settings);

}  // namespace torpor::executor
