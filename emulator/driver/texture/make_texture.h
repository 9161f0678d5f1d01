#pragma once

#include <cuda.h>

#include <optional>

#include "emulator/driver/base/driver_result.h"
#include "emulator/driver/base/handle_table.h"
#include "emulator/driver/memory/address_space.h"
#include "emulator/driver/texture/array.h"
#include "emulator/exec/texture/texture.h"

namespace torpor::emulator {

// A texture object as the application asked for it.
struct TextureRequest {
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC texture{};
  std::optional<CUDA_RESOURCE_VIEW_DESC> view;
};

// Where the resources of textures and surfaces are looked up.
struct ResourceTables {
  const ArrayTable& arrays;
  const MipmappedArrayTable& mipmapped_arrays;
  const AddressSpace& space;
};

// Make the objects that kernels read. Fail with CUDA_ERROR_INVALID_VALUE if parts of the
// description contradict each other or name no live memory or array, with CUDA_ERROR_NOT_SUPPORTED
// for compressed formats and seamless cubes.
DriverResult<Texture> MakeTexture(const TextureRequest& request, const ResourceTables& resources);
DriverResult<Surface> MakeSurface(const CUDA_RESOURCE_DESC& resource,
                                  const ResourceTables& resources);

}  // namespace torpor::emulator
