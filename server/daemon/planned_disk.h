#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/files.h"
#include "server/config/config.h"

namespace torpor::server {

// Returns the system's files with the disk faults that the topology of an emulated node plans
// (docs/emulator.md). Null if GPUs are real, or nothing is planned. `program_dir`: as of
// FindCudaLibraries. InvalidArgument if the topology is not valid, with line and reason.
absl::StatusOr<std::unique_ptr<Files>> PlannedDisk(const Config& config,
                                                   const std::string& program_dir);

}  // namespace torpor::server
