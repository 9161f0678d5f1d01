#pragma once

#include <cuda.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// Lets the device read and write [address, address + bytes), which must consist of whole mappings.
absl::Status AllowAccess(const Device& device, CUdeviceptr address, Bytes bytes);

// Returns a descriptor by which other processes can map the memory.
absl::StatusOr<UniqueFd> ExportMemory(const Device& device, CUmemGenericAllocationHandle memory);

// Returns a handle of physical memory exported by another process, to be released.
absl::StatusOr<CUmemGenericAllocationHandle> ImportMemory(const Device& device,
                                                          const UniqueFd& descriptor);

// Maps `bytes` of physical memory exported by another process; only the mapping keeps the memory
// alive. Call AllowAccess before the device uses the mapping.
absl::Status MapImported(const Device& device, const UniqueFd& descriptor, CUdeviceptr address,
                         Bytes bytes);

}  // namespace torpor::executor
