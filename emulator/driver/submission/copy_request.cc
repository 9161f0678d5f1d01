#include "emulator/driver/submission/copy_request.h"

#include <algorithm>

#include "base/try.h"
#include "emulator/driver/process/driver.h"
#include "emulator/driver/texture/array.h"

namespace torpor::emulator {
namespace {

// One end as the parameters of a copy describe it.
struct EndDescription {
  CUmemorytype type = CU_MEMORYTYPE_HOST;
  const void* host = nullptr;
  CUdeviceptr device = 0;
  CUarray array = nullptr;
  Bytes x = 0;  // in bytes
  Bytes y = 0;
  Bytes z = 0;
  Bytes pitch = 0;  // 0: rows follow each other
  Bytes rows = 0;   // of a slice; 0: as many as are copied
};

struct Extent {
  Bytes width = 0;
  Bytes height = 1;
  Bytes depth = 1;
};

// One end, ready to be copied.
struct ResolvedEnd {
  CopyEnd begin;
  Bytes pitch = 0;
  Bytes slice = 0;
  std::shared_ptr<ArrayMemory> memory;
};

// Whether [begin, begin + size) lies below `limit`; safe against overflow.
bool Fits(Bytes begin, Bytes size, Bytes limit) { return begin <= limit && size <= limit - begin; }

// Resolves a position in an array; the copy must begin and end at texels.
CUresult ResolveArray(const EndDescription& end, const Extent& extent, ResolvedEnd& resolved) {
  const auto array = Driver::Get().arrays().Share(end.array);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const TextureLevel& level = array->level;
  const Bytes texel = array->format.bytes();
  const bool inside = Fits(end.x, extent.width, level.width * texel) &&
                      Fits(end.y, extent.height, level.height) &&
                      Fits(end.z, extent.depth, level.slices);
  if (!inside || end.x % texel != 0 || extent.width % texel != 0) return CUDA_ERROR_INVALID_VALUE;
  resolved.begin = {reinterpret_cast<std::uint64_t>(level.Row(end.y, end.z) + end.x), false};
  resolved.pitch = level.row_pitch;
  resolved.slice = level.slice_pitch;
  resolved.memory = array->memory;
  return CUDA_SUCCESS;
}

// Resolves an end to an address, a pitch and a distance of slices.
CUresult Resolve(const EndDescription& end, const Extent& extent, ResolvedEnd& resolved) {
  switch (end.type) {
    case CU_MEMORYTYPE_HOST:
      resolved.begin = {reinterpret_cast<std::uint64_t>(end.host), false};
      break;
    case CU_MEMORYTYPE_DEVICE:
      resolved.begin = {end.device, true};
      break;
    case CU_MEMORYTYPE_UNIFIED:
      resolved.begin = {end.device, false};
      break;
    case CU_MEMORYTYPE_ARRAY:
      return ResolveArray(end, extent, resolved);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  resolved.pitch = end.pitch != 0 ? end.pitch : extent.width;
  const bool has_rows = extent.height > 1 || extent.depth > 1;
  if (has_rows && resolved.pitch < extent.width) return CUDA_ERROR_INVALID_VALUE;
  resolved.slice = resolved.pitch * (end.rows != 0 ? end.rows : extent.height);
  resolved.begin.address += end.z * resolved.slice + end.y * resolved.pitch + end.x;
  return CUDA_SUCCESS;
}

CUresult ToRequest(const EndDescription& target, const EndDescription& source, const Extent& extent,
                   CopyRequest& request) {
  ResolvedEnd to;
  TORPOR_TRY(Resolve(target, extent, to));
  ResolvedEnd from;
  TORPOR_TRY(Resolve(source, extent, from));
  request.to = to.begin;
  request.from = from.begin;
  request.width = extent.width;
  request.height = extent.height;
  request.depth = extent.depth;
  request.to_pitch = to.pitch;
  request.from_pitch = from.pitch;
  request.to_slice = to.slice;
  request.from_slice = from.slice;
  request.to_array = std::move(to.memory);
  request.from_array = std::move(from.memory);
  return CUDA_SUCCESS;
}

}  // namespace

// A 2D copy is a 3D copy of one slice.
CUresult ToRequest(const CUDA_MEMCPY2D& copy, CopyRequest& request) {
  CUDA_MEMCPY3D slice{};
  slice.srcXInBytes = copy.srcXInBytes;
  slice.srcY = copy.srcY;
  slice.srcMemoryType = copy.srcMemoryType;
  slice.srcHost = copy.srcHost;
  slice.srcDevice = copy.srcDevice;
  slice.srcArray = copy.srcArray;
  slice.srcPitch = copy.srcPitch;
  slice.dstXInBytes = copy.dstXInBytes;
  slice.dstY = copy.dstY;
  slice.dstMemoryType = copy.dstMemoryType;
  slice.dstHost = copy.dstHost;
  slice.dstDevice = copy.dstDevice;
  slice.dstArray = copy.dstArray;
  slice.dstPitch = copy.dstPitch;
  slice.WidthInBytes = copy.WidthInBytes;
  slice.Height = copy.Height;
  slice.Depth = 1;
  return ToRequest(slice, request);
}

CUresult ToRequest(const CUDA_MEMCPY3D& copy, CopyRequest& request) {
  if (copy.srcLOD != 0 || copy.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  const EndDescription target = {.type = copy.dstMemoryType,
                                 .host = copy.dstHost,
                                 .device = copy.dstDevice,
                                 .array = copy.dstArray,
                                 .x = copy.dstXInBytes,
                                 .y = copy.dstY,
                                 .z = copy.dstZ,
                                 .pitch = copy.dstPitch,
                                 .rows = copy.dstHeight};
  const EndDescription source = {.type = copy.srcMemoryType,
                                 .host = copy.srcHost,
                                 .device = copy.srcDevice,
                                 .array = copy.srcArray,
                                 .x = copy.srcXInBytes,
                                 .y = copy.srcY,
                                 .z = copy.srcZ,
                                 .pitch = copy.srcPitch,
                                 .rows = copy.srcHeight};
  return ToRequest(target, source, {copy.WidthInBytes, copy.Height, copy.Depth}, request);
}

}  // namespace torpor::emulator
