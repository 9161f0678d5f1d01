#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// Lists the GPUs of the driver in `cuda_library_dir` (empty: the system's), in the driver's order,
// without making a context.
absl::StatusOr<std::vector<DeviceProperties>> ListDevices(const std::string& cuda_library_dir);

}  // namespace torpor::executor
