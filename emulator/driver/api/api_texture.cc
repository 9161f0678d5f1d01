// Texture and surface objects.
#include "emulator/driver/api/api.h"
#include "emulator/driver/texture/texture_objects.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

// Calls `body` with the request of the texture object.
template <typename Out, typename Body>
CUresult DescribeTexture(Out* out, CUtexObject handle, Body&& body) {
  return InContext([&](Context&) {
    const auto request = Driver::Get().texture_objects().FindTexture(handle);
    if (out == nullptr || !request) return CUDA_ERROR_INVALID_VALUE;
    return body(*request);
  });
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuTexObjectCreate(CUtexObject* object, const CUDA_RESOURCE_DESC* resource,
                                   const CUDA_TEXTURE_DESC* texture,
                                   const CUDA_RESOURCE_VIEW_DESC* view) {
  return InContext([&](Context&) {
    if (object == nullptr || resource == nullptr || texture == nullptr) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    TextureRequest request{*resource, *texture, std::nullopt};
    if (view != nullptr) request.view = *view;
    const auto created = Driver::Get().texture_objects().CreateTexture(request);
    if (!created.ok()) return created.failure().code;
    *object = *created;
    return CUDA_SUCCESS;
  });
}

// A number that is no object is no error, as in NVIDIA's driver.
CUresult CUDAAPI cuTexObjectDestroy(CUtexObject object) {
  return InContext([&](Context&) {
    (void)Driver::Get().texture_objects().DestroyTexture(object);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUtexObject object) {
  return DescribeTexture(resource, object, [&](const TextureRequest& request) {
    *resource = request.resource;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* texture, CUtexObject object) {
  return DescribeTexture(texture, object, [&](const TextureRequest& request) {
    *texture = request.texture;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* view, CUtexObject object) {
  return DescribeTexture(view, object, [&](const TextureRequest& request) {
    if (!request.view) return CUDA_ERROR_INVALID_VALUE;
    *view = *request.view;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuSurfObjectCreate(CUsurfObject* object, const CUDA_RESOURCE_DESC* resource) {
  return InContext([&](Context&) {
    if (object == nullptr || resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto created = Driver::Get().texture_objects().CreateSurface(*resource);
    if (!created.ok()) return created.failure().code;
    *object = *created;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuSurfObjectDestroy(CUsurfObject object) {
  return InContext([&](Context&) {
    (void)Driver::Get().texture_objects().DestroySurface(object);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUsurfObject object) {
  return InContext([&](Context&) {
    const auto found = Driver::Get().texture_objects().FindSurface(object);
    if (resource == nullptr || !found) return CUDA_ERROR_INVALID_VALUE;
    *resource = *found;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
