#pragma once

#include <cuda.h>

// Texture and surface objects. Both APIs share the handles.
namespace torpor::shim {

// Creates a texture of the current device. `view` may be null. CUDA_ERROR_NOT_SUPPORTED for a
// description that the runtime cannot express.
CUresult CreateTexture(CUtexObject* object, const CUDA_RESOURCE_DESC* resource,
                       const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view);
// The descriptions at creation.
CUresult DescribeTextureResource(CUDA_RESOURCE_DESC* resource, CUtexObject object);
CUresult DescribeTexture(CUDA_TEXTURE_DESC* texture, CUtexObject object);
// Returns CUDA_ERROR_INVALID_VALUE if the texture has no view.
CUresult DescribeTextureView(CUDA_RESOURCE_VIEW_DESC* view, CUtexObject object);

// Creates a surface over an array.
CUresult CreateSurface(CUsurfObject* object, const CUDA_RESOURCE_DESC* resource);
CUresult DescribeSurfaceResource(CUDA_RESOURCE_DESC* resource, CUsurfObject object);

}  // namespace torpor::shim
