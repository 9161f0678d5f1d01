#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "client_shim/cuda/entry.h"

// Arrays, textures and surfaces as either API describes them. CUDA_ERROR_INVALID_VALUE for what is
// no description, CUDA_ERROR_NOT_SUPPORTED for what the runtime has no words for; the results are
// then not to be used.
namespace torpor::shim {

// Handles of arrays are the same in both APIs.
inline cudaArray_t AsRuntime(CUarray array) { return reinterpret_cast<cudaArray_t>(array); }
inline cudaMipmappedArray_t AsRuntime(CUmipmappedArray array) {
  return reinterpret_cast<cudaMipmappedArray_t>(array);
}

CUresult ToRuntime(CUarray_format format, unsigned channels, cudaChannelFormatDesc& description);
CUresult ToDriver(const cudaChannelFormatDesc& description, CUarray_format& format,
                  unsigned& channels);

// CUDA_ARRAY3D_... as cudaArray...
CUresult ToRuntimeArrayFlags(unsigned flags, unsigned& runtime_flags);

CUresult ToRuntime(const CUDA_RESOURCE_DESC& resource, cudaResourceDesc& description);
CUresult ToDriver(const cudaResourceDesc& description, CUDA_RESOURCE_DESC& resource);

CUresult ToRuntime(const CUDA_TEXTURE_DESC& texture, cudaTextureDesc& description);
CUDA_TEXTURE_DESC ToDriver(const cudaTextureDesc& description);

CUresult ToRuntime(const CUDA_RESOURCE_VIEW_DESC& view, cudaResourceViewDesc& description);
CUDA_RESOURCE_VIEW_DESC ToDriver(const cudaResourceViewDesc& description);

}  // namespace torpor::shim
