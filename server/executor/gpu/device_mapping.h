#pragma once

#include <cuda.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// Lets the device read and write [address, address + bytes), which consists of whole mappings.
absl::Status AllowAccess(const Device& device, CUdeviceptr address, Bytes bytes);

// A descriptor by which other processes map the memory.
absl::StatusOr<UniqueFd> ExportMemory(const Device& device, CUmemGenericAllocationHandle memory);

// Maps physical memory of `bytes` that another process has exported; only the mapping keeps the
// memory here. The device has no access yet.
absl::Status MapImported(const Device& device, const UniqueFd& descriptor, CUdeviceptr address,
                         Bytes bytes);

}  // namespace torpor::executor
