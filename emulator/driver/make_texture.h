#pragma once

#include "emulator/driver/address_space.h"
#include "emulator/driver/image_objects.h"
#include "emulator/exec/image/image.h"

namespace torpor::emulator {

// What kernels read through an object of this description. InvalidValue where parts of it
// contradict each other, are no memory or no array; NotSupported for compressed formats and
// seamless cubes.
DriverResult<Texture> MakeTexture(const TextureRequest& request);
DriverResult<Surface> MakeSurface(const CUDA_RESOURCE_DESC& resource);

}  // namespace torpor::emulator
