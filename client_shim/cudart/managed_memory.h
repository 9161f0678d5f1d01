#pragma once

#include <cuda_runtime_api.h>

#include "client_shim/cudart/managed_ranges.h"

namespace torpor::shim {

// Managed memory is pinned memory of the host arena: kernels and the program use the very same
// bytes, so it is coherent at any time and moves with no GPU.
ManagedRanges& TheManagedRanges();

bool IsManaged(const void* pointer);

}  // namespace torpor::shim
