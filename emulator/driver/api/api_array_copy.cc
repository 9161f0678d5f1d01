// Copies between linear memory and the rows of an array; compiled twice, see default_stream.h.
#include <algorithm>
#include <vector>

#include "emulator/driver/api/api.h"
#include "emulator/driver/api/default_stream.h"
#include "emulator/driver/submission/copy.h"
#include "emulator/driver/submission/copy_request.h"
#include "emulator/driver/texture/array.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface
using torpor::Bytes;

namespace {

// A place in an array, or the begin of linear memory.
struct End {
  CUarray array = nullptr;
  Bytes offset = 0;
  CopyEnd memory;
};

End ArrayEnd(CUarray array, size_t offset) { return {array, offset, {}}; }
End LinearHost(const void* pointer) {
  return {nullptr, 0, {reinterpret_cast<std::uint64_t>(pointer), false}};
}
End LinearDevice(CUdeviceptr address) { return {nullptr, 0, {address, true}}; }

Bytes RowBytes(const Array& array) { return Bytes{array.level.width} * array.format.bytes(); }

// Returns how many of `size` bytes, from the end's position on, lie in one row; 0 past the array's
// end, or for a destroyed array.
Bytes BytesInRow(const End& end, Bytes size) {
  if (end.array == nullptr) return size;
  const Array* array = Driver::Get().arrays().Get(end.array);
  if (array == nullptr || end.offset >= RowBytes(*array) * array->level.height) return 0;
  return std::min(size, RowBytes(*array) - end.offset % RowBytes(*array));
}

// Writes one end of a row's copy as cuMemcpy3D describes ends.
void SetEnd(const End& end, CUmemorytype& type, CUarray& array, Bytes& x, Bytes& y,
            CUdeviceptr& device, const void*& host) {
  if (end.array != nullptr) {
    const Bytes row = RowBytes(*Driver::Get().arrays().Get(end.array));
    type = CU_MEMORYTYPE_ARRAY;
    array = end.array;
    x = end.offset % row;
    y = end.offset / row;
  } else if (end.memory.device) {
    type = CU_MEMORYTYPE_DEVICE;
    device = end.memory.address;
  } else {
    type = CU_MEMORYTYPE_HOST;
    host = reinterpret_cast<const void*>(end.memory.address);
  }
}

// Makes the request of a copy inside one row.
CUresult RowRequest(const End& to, const End& from, Bytes bytes, CopyRequest& request) {
  CUDA_MEMCPY2D copy{};
  const void* target = nullptr;
  SetEnd(to, copy.dstMemoryType, copy.dstArray, copy.dstXInBytes, copy.dstY, copy.dstDevice,
         target);
  SetEnd(from, copy.srcMemoryType, copy.srcArray, copy.srcXInBytes, copy.srcY, copy.srcDevice,
         copy.srcHost);
  copy.dstHost = const_cast<void*>(target);
  copy.WidthInBytes = bytes;
  copy.Height = 1;
  return ToRequest(copy, request);
}

void Advance(End& end, Bytes bytes) {
  (end.array != nullptr ? end.offset : end.memory.address) += bytes;
}

// Whether all linear memory of a copy is accessible. CopyNow and CopyInStream check row by row, but
// a copy must not start unless every row is legal.
bool IsWhole(const End& end, Bytes size, Access access) {
  return size == 0 || end.array != nullptr ||
         Driver::Get().space().IsLegal(end.memory, size, access);
}

// Makes a request for each row.
CUresult RowRequests(End to, End from, Bytes size, std::vector<CopyRequest>& requests) {
  while (size > 0) {
    const Bytes bytes = BytesInRow(to, BytesInRow(from, size));
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    const CUresult valid = RowRequest(to, from, bytes, requests.emplace_back());
    if (valid != CUDA_SUCCESS) return valid;
    Advance(to, bytes);
    Advance(from, bytes);
    size -= bytes;
  }
  return CUDA_SUCCESS;
}

// Copies `size` contiguous bytes between flat ends, splitting at the rows of arrays.
CUresult CopyFlat(const End& to, const End& from, size_t size, CUstream stream,
                  CUresult (*copy)(const StreamTarget&, const CopyRequest&)) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    if (!IsWhole(to, size, Access::kWrite) || !IsWhole(from, size, Access::kRead)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    std::vector<CopyRequest> requests;
    CUresult result = RowRequests(to, from, size, requests);
    for (const CopyRequest& request : requests) {
      if (result == CUDA_SUCCESS) result = copy(target, request);
    }
    return result;
  });
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemcpyDtoA(CUarray to, size_t to_offset, CUdeviceptr from, size_t size) {
  return CopyFlat(ArrayEnd(to, to_offset), LinearDevice(from), size, nullptr, &CopyNow);
}
CUresult CUDAAPI cuMemcpyAtoD(CUdeviceptr to, CUarray from, size_t from_offset, size_t size) {
  return CopyFlat(LinearDevice(to), ArrayEnd(from, from_offset), size, nullptr, &CopyNow);
}
CUresult CUDAAPI cuMemcpyHtoA(CUarray to, size_t to_offset, const void* from, size_t size) {
  return CopyFlat(ArrayEnd(to, to_offset), LinearHost(from), size, nullptr, &CopyNow);
}
CUresult CUDAAPI cuMemcpyAtoH(void* to, CUarray from, size_t from_offset, size_t size) {
  return CopyFlat(LinearHost(to), ArrayEnd(from, from_offset), size, nullptr, &CopyNow);
}
CUresult CUDAAPI cuMemcpyAtoA(CUarray to, size_t to_offset, CUarray from, size_t from_offset,
                              size_t size) {
  return CopyFlat(ArrayEnd(to, to_offset), ArrayEnd(from, from_offset), size, nullptr, &CopyNow);
}
CUresult CUDAAPI cuMemcpyHtoAAsync(CUarray to, size_t to_offset, const void* from, size_t size,
                                   CUstream stream) {
  return CopyFlat(ArrayEnd(to, to_offset), LinearHost(from), size, stream, &CopyInStream);
}
CUresult CUDAAPI cuMemcpyAtoHAsync(void* to, CUarray from, size_t from_offset, size_t size,
                                   CUstream stream) {
  return CopyFlat(LinearHost(to), ArrayEnd(from, from_offset), size, stream, &CopyInStream);
}

}  // extern "C"
