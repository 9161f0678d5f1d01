#pragma once

#include <cuda_runtime_api.h>

// Texture and surface objects. The program holds the value of the driver on the GPU where the
// object was made, since programs keep such values in device memory too. Other executors learn the
// value and translate kernel parameters.
namespace torpor::shim {

// Destroys all texture and surface objects of the device in use (cudaDeviceReset).
cudaError_t DestroyAllTextureObjects();

}  // namespace torpor::shim
