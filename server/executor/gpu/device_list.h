#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// The GPUs that the driver in `cuda_library_dir` (empty: the system's) counts, in its order. No
// context is made.
absl::StatusOr<std::vector<DeviceProperties>> ListDevices(const std::string& cuda_library_dir);

}  // namespace torpor::executor
