#include "client_shim/cuda/copies.h"

#include <cstdint>

namespace torpor::shim {
namespace {

// One side of a copy: where its first byte is, and how far apart rows and layers are.
struct Side {
  std::uint8_t* begin = nullptr;
  std::size_t pitch = 0;
  std::size_t layer = 0;
};

// The addresses of memory of type `type`. Null: it is of a type that is not addressed.
std::uint8_t* BaseOf(CUmemorytype type, const void* host, CUdeviceptr device) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      return static_cast<std::uint8_t*>(const_cast<void*>(host));
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
      return static_cast<std::uint8_t*>(At(device));
    default:
      return nullptr;
  }
}

CUresult CopyRows(const Side& to, const Side& from, std::size_t width, std::size_t height,
                  CUstream stream) {
  return ToCuResult(Runtime().cudaMemcpy2DAsync(to.begin, to.pitch, from.begin, from.pitch, width,
                                                height, cudaMemcpyDefault, stream));
}

CUresult Finish(CUstream stream, CopyWait wait) {
  return wait == CopyWait::kYes ? ToCuResult(Runtime().cudaStreamSynchronize(stream))
                                : CUDA_SUCCESS;
}

template <typename Copy>
bool NamesArray(const Copy& copy) {
  return copy.srcMemoryType == CU_MEMORYTYPE_ARRAY || copy.dstMemoryType == CU_MEMORYTYPE_ARRAY;
}

// A pitch of zero means that rows lie one after another.
template <typename Copy>
Side SourceOf(const Copy& copy) {
  std::uint8_t* const base = BaseOf(copy.srcMemoryType, copy.srcHost, copy.srcDevice);
  const std::size_t pitch = copy.srcPitch != 0 ? copy.srcPitch : copy.WidthInBytes;
  return {base ? base + copy.srcY * pitch + copy.srcXInBytes : nullptr, pitch};
}

template <typename Copy>
Side TargetOf(const Copy& copy) {
  std::uint8_t* const base = BaseOf(copy.dstMemoryType, copy.dstHost, copy.dstDevice);
  const std::size_t pitch = copy.dstPitch != 0 ? copy.dstPitch : copy.WidthInBytes;
  return {base ? base + copy.dstY * pitch + copy.dstXInBytes : nullptr, pitch};
}

}  // namespace

CUresult CopyRectangle(const CUDA_MEMCPY2D* copy, CUstream stream, CopyWait wait) {
  if (!copy) return CUDA_ERROR_INVALID_VALUE;
  if (NamesArray(*copy)) return Refuse("a driver API copy of CUDA arrays");
  TORPOR_CU_TRY(
      CopyRows(TargetOf(*copy), SourceOf(*copy), copy->WidthInBytes, copy->Height, stream));
  return Finish(stream, wait);
}

CUresult CopyBox(const CUDA_MEMCPY3D* copy, CUstream stream, CopyWait wait) {
  if (!copy || copy->srcLOD != 0 || copy->dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  if (NamesArray(*copy)) return Refuse("a driver API copy of CUDA arrays");
  Side from = SourceOf(*copy);
  Side to = TargetOf(*copy);
  if (!from.begin || !to.begin) return CUDA_ERROR_INVALID_VALUE;
  from.layer = from.pitch * (copy->srcHeight != 0 ? copy->srcHeight : copy->Height);
  to.layer = to.pitch * (copy->dstHeight != 0 ? copy->dstHeight : copy->Height);
  from.begin += copy->srcZ * from.layer;
  to.begin += copy->dstZ * to.layer;
  for (std::size_t z = 0; z < copy->Depth; ++z) {
    TORPOR_CU_TRY(CopyRows(to, from, copy->WidthInBytes, copy->Height, stream));
    from.begin += from.layer;
    to.begin += to.layer;
  }
  return Finish(stream, wait);
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
