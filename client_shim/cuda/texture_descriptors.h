#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "client_shim/cuda/entry.h"

// Converts descriptions of arrays, textures and surfaces between both APIs. Returns
// CUDA_ERROR_INVALID_VALUE for an invalid description and CUDA_ERROR_NOT_SUPPORTED for a
// description that the runtime cannot express; the results are then undefined.
namespace torpor::shim {

// Handles of arrays are the same in both APIs.
inline cudaArray_t AsRuntime(CUarray array) { return reinterpret_cast<cudaArray_t>(array); }
inline cudaMipmappedArray_t AsRuntime(CUmipmappedArray array) {
  return reinterpret_cast<cudaMipmappedArray_t>(array);
}

// A channel format: the runtime counts bits for each channel, the driver has an enumeration.
CUresult ToRuntime(CUarray_format format, unsigned channels, cudaChannelFormatDesc& description);
CUresult ToDriver(const cudaChannelFormatDesc& description, CUarray_format& format,
                  unsigned& channels);

// Converts CUDA_ARRAY3D_... to cudaArray... flags.
CUresult ToRuntimeArrayFlags(unsigned flags, unsigned& runtime_flags);

// The memory behind a texture or surface: an array, a mipmapped array, or linear memory.
CUresult ToRuntime(const CUDA_RESOURCE_DESC& resource, cudaResourceDesc& description);
CUresult ToDriver(const cudaResourceDesc& description, CUDA_RESOURCE_DESC& resource);

// The sampling of a texture: addressing, filters, levels.
CUresult ToRuntime(const CUDA_TEXTURE_DESC& texture, cudaTextureDesc& description);
CUDA_TEXTURE_DESC ToDriver(const cudaTextureDesc& description);

// A view of an array in another format or with fewer levels and layers.
CUresult ToRuntime(const CUDA_RESOURCE_VIEW_DESC& view, cudaResourceViewDesc& description);
CUDA_RESOURCE_VIEW_DESC ToDriver(const cudaResourceViewDesc& description);

}  // namespace torpor::shim
