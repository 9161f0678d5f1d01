// Arrays and mipmapped arrays.
#include <utility>

#include "base/try.h"
#include "emulator/driver/api/api.h"
#include "emulator/driver/texture/array.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

CUresult CreateArray(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR& description) {
  return InContext([&](Context& context) {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto arrays = MakeArrays(description, 1, context.device());
    if (!arrays.ok()) return arrays.failure().code;
    *handle = Driver::Get().arrays().Create(std::move(arrays->front()));
    return CUDA_SUCCESS;
  });
}

// Calls `body(Context&, const Array&)`, or returns CUDA_ERROR_INVALID_HANDLE.
template <typename Body>
CUresult WithArray(CUarray handle, Body&& body) {
  return InContext([&](Context& context) {
    const Array* array = Driver::Get().arrays().Get(handle);
    return array == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(context, *array);
  });
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* description) {
  if (description == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_ARRAY3D_DESCRIPTOR whole{};
  whole.Width = description->Width;
  whole.Height = description->Height;
  whole.Format = description->Format;
  whole.NumChannels = description->NumChannels;
  return CreateArray(array, whole);
}

CUresult CUDAAPI cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* description) {
  return description == nullptr ? CUDA_ERROR_INVALID_VALUE : CreateArray(array, *description);
}

CUresult CUDAAPI cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR* description, CUarray handle) {
  return WithArray(handle, [&](Context&, const Array& array) {
    if (description == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR& whole = array.description;
    *description = {whole.Width, whole.Height, whole.Format, whole.NumChannels};
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR* description, CUarray handle) {
  return WithArray(handle, [&](Context&, const Array& array) {
    if (description == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *description = array.description;
    return CUDA_SUCCESS;
  });
}

// Waits first: kernels and copies in flight may still use the array.
CUresult CUDAAPI cuArrayDestroy(CUarray handle) {
  return WithArray(handle, [&](Context& context, const Array& array) {
    if (array.is_level) return CUDA_ERROR_INVALID_VALUE;
    context.WaitAll();
    TORPOR_TRY(context.sticky());
    return Driver::Get().arrays().Destroy(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE
                                                             : CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMipmappedArrayCreate(CUmipmappedArray* handle,
                                        const CUDA_ARRAY3D_DESCRIPTOR* description,
                                        unsigned int levels) {
  return InContext([&](Context& context) {
    if (handle == nullptr || description == nullptr || levels == 0) return CUDA_ERROR_INVALID_VALUE;
    auto arrays = MakeArrays(*description, levels, context.device());
    if (!arrays.ok()) return arrays.failure().code;
    auto mipmapped = std::make_shared<MipmappedArray>();
    mipmapped->description = *description;
    for (auto& array : *arrays) {
      array->is_level = true;
      mipmapped->levels.push_back(Driver::Get().arrays().Create(std::move(array)));
    }
    *handle = Driver::Get().mipmapped_arrays().Create(std::move(mipmapped));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMipmappedArrayGetLevel(CUarray* level_array, CUmipmappedArray handle,
                                          unsigned int level) {
  return InContext([&](Context&) {
    const MipmappedArray* mipmapped = Driver::Get().mipmapped_arrays().Get(handle);
    if (mipmapped == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (level_array == nullptr || level >= mipmapped->levels.size()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *level_array = mipmapped->levels[level];
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMipmappedArrayDestroy(CUmipmappedArray handle) {
  return InContext([&](Context& context) {
    Driver& driver = Driver::Get();
    if (driver.mipmapped_arrays().Get(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    context.WaitAll();
    TORPOR_TRY(context.sticky());
    const auto mipmapped = driver.mipmapped_arrays().Destroy(handle);
    if (mipmapped == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    for (CUarray level : mipmapped->levels) driver.arrays().Destroy(level);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
