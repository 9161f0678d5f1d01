#pragma once

#include <cuda_runtime_api.h>

// Texture and surface objects. The value that the program holds is that of the driver of the GPU
// where the object was made: programs keep such values in device memory, too. Other executors are
// told of it and translate kernel parameters.
namespace torpor::shim {

// For cudaDeviceReset.
cudaError_t DestroyAllImageObjects();

}  // namespace torpor::shim
