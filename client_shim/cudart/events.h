#pragma once

#include <cuda_runtime_api.h>

namespace torpor::shim {

// Destroys every event that the program made.
cudaError_t DestroyAllEvents();

}  // namespace torpor::shim
