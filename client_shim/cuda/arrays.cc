#include "client_shim/cuda/arrays.h"

#include "client_shim/cuda/texture_descriptors.h"

namespace torpor::shim {
namespace {

// The arguments of the runtime's functions that create arrays.
struct Wanted {
  cudaChannelFormatDesc format{};
  cudaExtent extent{};
  unsigned flags = 0;
};

CUresult Read(const CUDA_ARRAY3D_DESCRIPTOR& descriptor, Wanted& wanted) {
  wanted.extent = {descriptor.Width, descriptor.Height, descriptor.Depth};
  TORPOR_CU_TRY(ToRuntimeArrayFlags(descriptor.Flags, wanted.flags));
  return ToRuntime(descriptor.Format, descriptor.NumChannels, wanted.format);
}

}  // namespace

CUresult CreateArray(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
  if (!descriptor) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR flat = {descriptor->Width,  descriptor->Height,      0,
                                        descriptor->Format, descriptor->NumChannels, 0};
  return CreateArray(array, &flat);
}

CUresult CreateArray(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  if (!array || !descriptor) return CUDA_ERROR_INVALID_VALUE;
  Wanted wanted;
  TORPOR_CU_TRY(Read(*descriptor, wanted));
  cudaArray_t created = nullptr;
  TORPOR_CU_TRY(Runtime().cudaMalloc3DArray(&created, &wanted.format, wanted.extent, wanted.flags));
  *array = reinterpret_cast<CUarray>(created);
  return CUDA_SUCCESS;
}

CUresult DescribeArray(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray array) {
  if (!descriptor) return CUDA_ERROR_INVALID_VALUE;
  CUDA_ARRAY3D_DESCRIPTOR whole;
  TORPOR_CU_TRY(DescribeArray(&whole, array));
  *descriptor = {whole.Width, whole.Height, whole.Format, whole.NumChannels};
  return CUDA_SUCCESS;
}

CUresult DescribeArray(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray array) {
  if (!descriptor) return CUDA_ERROR_INVALID_VALUE;
  Wanted found;
  TORPOR_CU_TRY(
      Runtime().cudaArrayGetInfo(&found.format, &found.extent, &found.flags, AsRuntime(array)));
  CUDA_ARRAY3D_DESCRIPTOR described{};
  TORPOR_CU_TRY(ToDriver(found.format, described.Format, described.NumChannels));
  described.Width = found.extent.width;
  described.Height = found.extent.height;
  described.Depth = found.extent.depth;
  described.Flags = found.flags;
  *descriptor = described;
  return CUDA_SUCCESS;
}

CUresult DestroyArray(CUarray array) {
  if (!array) return CUDA_ERROR_INVALID_HANDLE;
  return ToCuResult(Runtime().cudaFreeArray(AsRuntime(array)));
}

CUresult DestroyMipmappedArray(CUmipmappedArray array) {
  if (!array) return CUDA_ERROR_INVALID_HANDLE;
  return ToCuResult(Runtime().cudaFreeMipmappedArray(AsRuntime(array)));
}

CUresult CreateMipmappedArray(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor,
                              unsigned levels) {
  if (!array || !descriptor) return CUDA_ERROR_INVALID_VALUE;
  Wanted wanted;
  TORPOR_CU_TRY(Read(*descriptor, wanted));
  cudaMipmappedArray_t created = nullptr;
  TORPOR_CU_TRY(Runtime().cudaMallocMipmappedArray(&created, &wanted.format, wanted.extent, levels,
                                                   wanted.flags));
  *array = reinterpret_cast<CUmipmappedArray>(created);
  return CUDA_SUCCESS;
}

CUresult GetLevel(CUarray* level_array, CUmipmappedArray array, unsigned level) {
  if (!level_array) return CUDA_ERROR_INVALID_VALUE;
  cudaArray_t found = nullptr;
  TORPOR_CU_TRY(Runtime().cudaGetMipmappedArrayLevel(&found, AsRuntime(array), level));
  *level_array = reinterpret_cast<CUarray>(found);
  return CUDA_SUCCESS;
}

}  // namespace torpor::shim
