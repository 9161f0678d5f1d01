#pragma once

#include <string>

namespace torpor::executor {

// Returns which of the device files that NVIDIA's driver needs are missing in `folder` or closed to
// this process, and how to mend that; empty if all are there. A driver without them says only that
// there is no GPU, or an unknown error.
std::string MissingDeviceFiles(const std::string& folder = "/dev");

}  // namespace torpor::executor
