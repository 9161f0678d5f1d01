#include "client_shim/cuda/texture_objects.h"

#include "client_shim/cuda/texture_descriptors.h"

namespace torpor::shim {

CUresult CreateTexture(CUtexObject* object, const CUDA_RESOURCE_DESC* resource,
                       const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view) {
  if (!resource || !texture) return CUDA_ERROR_INVALID_VALUE;
  cudaResourceDesc runtime_resource;
  TORPOR_CU_TRY(ToRuntime(*resource, runtime_resource));
  cudaTextureDesc runtime_texture;
  TORPOR_CU_TRY(ToRuntime(*texture, runtime_texture));
  cudaResourceViewDesc runtime_view;
  if (view) TORPOR_CU_TRY(ToRuntime(*view, runtime_view));
  return ToCuResult(Runtime().cudaCreateTextureObject(object, &runtime_resource, &runtime_texture,
                                                      view ? &runtime_view : nullptr));
}

CUresult DescribeTextureResource(CUDA_RESOURCE_DESC* resource, CUtexObject object) {
  if (!resource) return CUDA_ERROR_INVALID_VALUE;
  cudaResourceDesc description;
  TORPOR_CU_TRY(Runtime().cudaGetTextureObjectResourceDesc(&description, object));
  return ToDriver(description, *resource);
}

CUresult DescribeTexture(CUDA_TEXTURE_DESC* texture, CUtexObject object) {
  if (!texture) return CUDA_ERROR_INVALID_VALUE;
  cudaTextureDesc description;
  TORPOR_CU_TRY(Runtime().cudaGetTextureObjectTextureDesc(&description, object));
  *texture = ToDriver(description);
  return CUDA_SUCCESS;
}

CUresult DescribeTextureView(CUDA_RESOURCE_VIEW_DESC* view, CUtexObject object) {
  if (!view) return CUDA_ERROR_INVALID_VALUE;
  cudaResourceViewDesc description;
  TORPOR_CU_TRY(Runtime().cudaGetTextureObjectResourceViewDesc(&description, object));
  *view = ToDriver(description);
  return CUDA_SUCCESS;
}

CUresult CreateSurface(CUsurfObject* object, const CUDA_RESOURCE_DESC* resource) {
  if (!resource) return CUDA_ERROR_INVALID_VALUE;
  cudaResourceDesc description;
  TORPOR_CU_TRY(ToRuntime(*resource, description));
  return ToCuResult(Runtime().cudaCreateSurfaceObject(object, &description));
}

CUresult DescribeSurfaceResource(CUDA_RESOURCE_DESC* resource, CUsurfObject object) {
  if (!resource) return CUDA_ERROR_INVALID_VALUE;
  cudaResourceDesc description;
  TORPOR_CU_TRY(Runtime().cudaGetSurfaceObjectResourceDesc(&description, object));
  return ToDriver(description, *resource);
}

}  // namespace torpor::shim
