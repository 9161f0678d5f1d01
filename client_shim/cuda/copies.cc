#include "client_shim/cuda/copies.h"

#include <cstdint>

#include "client_shim/cuda/texture_descriptors.h"

namespace torpor::shim {
namespace {

// One side of a copy.
struct Side {
  CUmemorytype type = CU_MEMORYTYPE_HOST;
  const void* host = nullptr;  // the type decides which of these three is set
  CUdeviceptr device = 0;
  CUarray array = nullptr;
  std::size_t x = 0;  // in bytes
  std::size_t y = 0;
  std::size_t z = 0;
  std::size_t pitch = 0;  // bytes from row to row; of no meaning for arrays
  std::size_t rows = 0;   // from slice to slice; the same

  bool is_array() const { return type == CU_MEMORYTYPE_ARRAY; }
};

// A pitch of zero means contiguous rows, a height of zero contiguous slices.
Side SourceOf(const CUDA_MEMCPY3D& copy) {
  return {copy.srcMemoryType,
          copy.srcHost,
          copy.srcDevice,
          copy.srcArray,
          copy.srcXInBytes,
          copy.srcY,
          copy.srcZ,
          copy.srcPitch != 0 ? copy.srcPitch : copy.WidthInBytes,
          copy.srcHeight != 0 ? copy.srcHeight : copy.Height};
}

Side TargetOf(const CUDA_MEMCPY3D& copy) {
  return {copy.dstMemoryType,
          copy.dstHost,
          copy.dstDevice,
          copy.dstArray,
          copy.dstXInBytes,
          copy.dstY,
          copy.dstZ,
          copy.dstPitch != 0 ? copy.dstPitch : copy.WidthInBytes,
          copy.dstHeight != 0 ? copy.dstHeight : copy.Height};
}

// The address of the side's memory; null for an unknown type.
std::uint8_t* BaseOf(const Side& side) {
  switch (side.type) {
    case CU_MEMORYTYPE_HOST:
      return static_cast<std::uint8_t*>(const_cast<void*>(side.host));
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
      return static_cast<std::uint8_t*>(At(side.device));
    default:
      return nullptr;
  }
}

CUresult Finish(CUstream stream, CopyWait wait) {
  return wait == CopyWait::kYes ? ToCuResult(Runtime().cudaStreamSynchronize(stream))
                                : CUDA_SUCCESS;
}

// Copies slice by slice: the runtime's copies of rows need no intermediate pinned memory.
CUresult CopyMemory(const Side& to, const Side& from, const cudaExtent& extent, CUstream stream,
                    CopyWait wait) {
  std::uint8_t* const target = BaseOf(to);
  const std::uint8_t* const source = BaseOf(from);
  if (!target || !source) return CUDA_ERROR_INVALID_VALUE;
  const auto offset = [](const Side& side, std::size_t z) {
    return ((side.z + z) * side.rows + side.y) * side.pitch + side.x;
  };
  for (std::size_t z = 0; z < extent.depth; ++z)
    TORPOR_CU_TRY(Runtime().cudaMemcpy2DAsync(target + offset(to, z), to.pitch,
                                              source + offset(from, z), from.pitch, extent.width,
                                              extent.height, cudaMemcpyDefault, stream));
  return Finish(stream, wait);
}

// One side in the runtime's terms: positions and widths are in texels if an array takes part.
// `texel` is the size of a texel in bytes; 1 for memory.
struct RuntimeSide {
  cudaArray_t array = nullptr;
  cudaPitchedPtr memory{};
  cudaPos position{};
  std::size_t texel = 1;
};

CUresult GetTexelBytes(cudaArray_t array, std::size_t& bytes) {
  cudaChannelFormatDesc format{};
  TORPOR_CU_TRY(Runtime().cudaGetChannelDesc(&format, array));
  bytes = static_cast<std::size_t>(format.x + format.y + format.z + format.w) / 8;
  return CUDA_SUCCESS;
}

CUresult Locate(const Side& side, RuntimeSide& runtime) {
  if (side.is_array()) {
    runtime.array = AsRuntime(side.array);
    TORPOR_CU_TRY(GetTexelBytes(runtime.array, runtime.texel));
  } else {
    runtime.memory = {BaseOf(side), side.pitch, side.pitch, side.rows};
  }
  runtime.position = {side.x / runtime.texel, side.y, side.z};
  return side.x % runtime.texel == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CopyArrays(const Side& to, const Side& from, const cudaExtent& extent, CUstream stream,
                    CopyWait wait) {
  RuntimeSide target;
  TORPOR_CU_TRY(Locate(to, target));
  RuntimeSide source;
  TORPOR_CU_TRY(Locate(from, source));
  const std::size_t texel = to.is_array() ? target.texel : source.texel;
  if (extent.width % texel != 0) return CUDA_ERROR_INVALID_VALUE;
  const cudaMemcpy3DParms copy = {source.array,
                                  source.position,
                                  source.memory,
                                  target.array,
                                  target.position,
                                  target.memory,
                                  {extent.width / texel, extent.height, extent.depth},
                                  cudaMemcpyDefault};
  if (wait == CopyWait::kNo) return ToCuResult(Runtime().cudaMemcpy3DAsync(&copy, stream));
  return ToCuResult(stream == cudaStreamPerThread ? Runtime().cudaMemcpy3D_ptds(&copy)
                                                  : Runtime().cudaMemcpy3D(&copy));
}

// A rectangle as a box of one slice.
CUDA_MEMCPY3D AsBox(const CUDA_MEMCPY2D& rectangle) {
  CUDA_MEMCPY3D box{};
  box.srcXInBytes = rectangle.srcXInBytes;
  box.srcY = rectangle.srcY;
  box.srcMemoryType = rectangle.srcMemoryType;
  box.srcHost = rectangle.srcHost;
  box.srcDevice = rectangle.srcDevice;
  box.srcArray = rectangle.srcArray;
  box.srcPitch = rectangle.srcPitch;
  box.dstXInBytes = rectangle.dstXInBytes;
  box.dstY = rectangle.dstY;
  box.dstMemoryType = rectangle.dstMemoryType;
  box.dstHost = rectangle.dstHost;
  box.dstDevice = rectangle.dstDevice;
  box.dstArray = rectangle.dstArray;
  box.dstPitch = rectangle.dstPitch;
  box.WidthInBytes = rectangle.WidthInBytes;
  box.Height = rectangle.Height;
  box.Depth = 1;
  return box;
}

}  // namespace

CUresult CopyRectangle(const CUDA_MEMCPY2D* copy, CUstream stream, CopyWait wait) {
  if (!copy) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMCPY3D box = AsBox(*copy);
  return CopyBox(&box, stream, wait);
}

CUresult CopyBox(const CUDA_MEMCPY3D* copy, CUstream stream, CopyWait wait) {
  if (!copy || copy->srcLOD != 0 || copy->dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  const Side from = SourceOf(*copy);
  const Side to = TargetOf(*copy);
  const cudaExtent extent = {copy->WidthInBytes, copy->Height, copy->Depth};
  return from.is_array() || to.is_array() ? CopyArrays(to, from, extent, stream, wait)
                                          : CopyMemory(to, from, extent, stream, wait);
}

CUresult SetElements(CUdeviceptr to, unsigned value, unsigned element_bytes, std::size_t count,
                     CUstream stream) {
  return ToCuResult(Seam().set_elements(At(to), value, element_bytes, count, stream));
}

CUresult SetRows(CUdeviceptr to, std::size_t pitch, unsigned value, unsigned element_bytes,
                 std::size_t width, std::size_t height, CUstream stream) {
  if (width == 0 || height == 0) return CUDA_SUCCESS;
  if (element_bytes == 1) {
    return ToCuResult(
        Runtime().cudaMemset2DAsync(At(to), pitch, static_cast<int>(value), width, height, stream));
  }
  if (height > 1 && (pitch % element_bytes != 0 || width > pitch / element_bytes))
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t row = 0; row < height; ++row)
    TORPOR_CU_TRY(SetElements(to + row * pitch, value, element_bytes, width, stream));
  return CUDA_SUCCESS;
}

}  // namespace torpor::shim
