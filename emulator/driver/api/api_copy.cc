// Copies and fills; compiled twice, see default_stream.h.
#include "emulator/driver/api/api.h"
#include "emulator/driver/api/default_stream.h"
#include "emulator/driver/submission/copy.h"
#include "emulator/driver/submission/copy_request.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

CopyEnd HostEnd(const void* pointer) { return {reinterpret_cast<std::uint64_t>(pointer), false}; }
CopyEnd DeviceEnd(CUdeviceptr address) { return {address, true}; }
// Either; the address tells.
CopyEnd UnifiedEnd(CUdeviceptr address) { return {address, false}; }

CUresult CopyLinear(CopyEnd to, CopyEnd from, size_t size) {
  return OnStream(OrDefault(nullptr), [&](const StreamTarget& target) {
    return CopyNow(target, {.to = to, .from = from, .width = size});
  });
}

CUresult CopyLinearAsync(CopyEnd to, CopyEnd from, size_t size, CUstream stream) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    return CopyInStream(target, {.to = to, .from = from, .width = size});
  });
}

// 2D and 3D copies, by their descriptions.
template <typename Description>
CUresult CopyPitched(const Description* copy) {
  return OnStream(OrDefault(nullptr), [&](const StreamTarget& target) {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CopyRequest request;
    const CUresult valid = ToRequest(*copy, request);
    return valid != CUDA_SUCCESS ? valid : CopyNow(target, request);
  });
}

template <typename Description>
CUresult CopyPitchedAsync(const Description* copy, CUstream stream) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CopyRequest request;
    const CUresult valid = ToRequest(*copy, request);
    return valid != CUDA_SUCCESS ? valid : CopyInStream(target, request);
  });
}

// Addresses and arrays tell the device by themselves: the contexts of a peer copy say nothing new.
CUDA_MEMCPY3D WithoutContexts(const CUDA_MEMCPY3D_PEER& peer) {
  CUDA_MEMCPY3D copy{};
  copy.srcXInBytes = peer.srcXInBytes;
  copy.srcY = peer.srcY;
  copy.srcZ = peer.srcZ;
  copy.srcMemoryType = peer.srcMemoryType;
  copy.srcHost = peer.srcHost;
  copy.srcDevice = peer.srcDevice;
  copy.srcPitch = peer.srcPitch;
  copy.srcHeight = peer.srcHeight;
  copy.srcArray = peer.srcArray;
  copy.srcLOD = peer.srcLOD;
  copy.dstXInBytes = peer.dstXInBytes;
  copy.dstY = peer.dstY;
  copy.dstZ = peer.dstZ;
  copy.dstMemoryType = peer.dstMemoryType;
  copy.dstHost = peer.dstHost;
  copy.dstDevice = peer.dstDevice;
  copy.dstPitch = peer.dstPitch;
  copy.dstHeight = peer.dstHeight;
  copy.dstArray = peer.dstArray;
  copy.dstLOD = peer.dstLOD;
  copy.WidthInBytes = peer.WidthInBytes;
  copy.Height = peer.Height;
  copy.Depth = peer.Depth;
  return copy;
}

CUresult Fill(const FillRequest& request) {
  return OnStream(OrDefault(nullptr),
                  [&](const StreamTarget& target) { return FillNow(target, request); });
}

CUresult FillAsync(const FillRequest& request, CUstream stream) {
  return OnStream(OrDefault(stream),
                  [&](const StreamTarget& target) { return FillInStream(target, request); });
}

// One row of `count` units of `unit` bytes.
FillRequest Row(CUdeviceptr address, std::uint32_t value, torpor::Bytes unit, size_t count) {
  return {.address = address, .value = value, .unit = unit, .width = count, .pitch = 0};
}

FillRequest Rows(CUdeviceptr address, size_t pitch, std::uint32_t value, torpor::Bytes unit,
                 size_t width, size_t height) {
  return {.address = address,
          .value = value,
          .unit = unit,
          .width = width,
          .height = height,
          .pitch = pitch};
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return CopyLinear(UnifiedEnd(to), UnifiedEnd(from), size);
}
CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  return CopyLinearAsync(UnifiedEnd(to), UnifiedEnd(from), size, stream);
}
CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t size) {
  return CopyLinear(DeviceEnd(to), HostEnd(from), size);
}
CUresult CUDAAPI cuMemcpyDtoH(void* to, CUdeviceptr from, size_t size) {
  return CopyLinear(HostEnd(to), DeviceEnd(from), size);
}
CUresult CUDAAPI cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return CopyLinear(DeviceEnd(to), DeviceEnd(from), size);
}
CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
  return CopyLinearAsync(DeviceEnd(to), HostEnd(from), size, stream);
}
CUresult CUDAAPI cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t size, CUstream stream) {
  return CopyLinearAsync(HostEnd(to), DeviceEnd(from), size, stream);
}
CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  return CopyLinearAsync(DeviceEnd(to), DeviceEnd(from), size, stream);
}
// Peers share the address space of the process, so the contexts do not matter.
CUresult CUDAAPI cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t size) {
  return CopyLinear(DeviceEnd(to), DeviceEnd(from), size);
}
CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext,
                                   size_t size, CUstream stream) {
  return CopyLinearAsync(DeviceEnd(to), DeviceEnd(from), size, stream);
}

CUresult CUDAAPI cuMemcpy2D(const CUDA_MEMCPY2D* copy) { return CopyPitched(copy); }
CUresult CUDAAPI cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* copy) { return CopyPitched(copy); }
CUresult CUDAAPI cuMemcpy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return CopyPitchedAsync(copy, stream);
}
CUresult CUDAAPI cuMemcpy3D(const CUDA_MEMCPY3D* copy) { return CopyPitched(copy); }
CUresult CUDAAPI cuMemcpy3DAsync(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return CopyPitchedAsync(copy, stream);
}
CUresult CUDAAPI cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMCPY3D plain = WithoutContexts(*copy);
  return CopyPitched(&plain);
}
CUresult CUDAAPI cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMCPY3D plain = WithoutContexts(*copy);
  return CopyPitchedAsync(&plain, stream);
}

// The copies of a batch run in order, though CUDA promises no order.
CUresult CUDAAPI cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                                    CUmemcpyAttributes*, size_t*, size_t, CUstream stream) {
  if (stream == nullptr || stream == CU_STREAM_LEGACY || to == nullptr || from == nullptr ||
      sizes == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; ++i) {
    const CUresult result =
        CopyLinearAsync(UnifiedEnd(to[i]), UnifiedEnd(from[i]), sizes[i], stream);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemsetD8(CUdeviceptr address, unsigned char value, size_t count) {
  return Fill(Row(address, value, 1, count));
}
CUresult CUDAAPI cuMemsetD16(CUdeviceptr address, unsigned short value, size_t count) {
  return Fill(Row(address, value, 2, count));
}
CUresult CUDAAPI cuMemsetD32(CUdeviceptr address, unsigned int value, size_t count) {
  return Fill(Row(address, value, 4, count));
}
CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t count,
                                 CUstream stream) {
  return FillAsync(Row(address, value, 1, count), stream);
}
CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr address, unsigned short value, size_t count,
                                  CUstream stream) {
  return FillAsync(Row(address, value, 2, count), stream);
}
CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr address, unsigned int value, size_t count,
                                  CUstream stream) {
  return FillAsync(Row(address, value, 4, count), stream);
}
CUresult CUDAAPI cuMemsetD2D8(CUdeviceptr address, size_t pitch, unsigned char value, size_t width,
                              size_t height) {
  return Fill(Rows(address, pitch, value, 1, width, height));
}
CUresult CUDAAPI cuMemsetD2D16(CUdeviceptr address, size_t pitch, unsigned short value,
                               size_t width, size_t height) {
  return Fill(Rows(address, pitch, value, 2, width, height));
}
CUresult CUDAAPI cuMemsetD2D32(CUdeviceptr address, size_t pitch, unsigned int value, size_t width,
                               size_t height) {
  return Fill(Rows(address, pitch, value, 4, width, height));
}
CUresult CUDAAPI cuMemsetD2D8Async(CUdeviceptr address, size_t pitch, unsigned char value,
                                   size_t width, size_t height, CUstream stream) {
  return FillAsync(Rows(address, pitch, value, 1, width, height), stream);
}
CUresult CUDAAPI cuMemsetD2D16Async(CUdeviceptr address, size_t pitch, unsigned short value,
                                    size_t width, size_t height, CUstream stream) {
  return FillAsync(Rows(address, pitch, value, 2, width, height), stream);
}
CUresult CUDAAPI cuMemsetD2D32Async(CUdeviceptr address, size_t pitch, unsigned int value,
                                    size_t width, size_t height, CUstream stream) {
  return FillAsync(Rows(address, pitch, value, 4, width, height), stream);
}

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr* address, size_t size, CUstream stream) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // The default pool is the device's.
    const auto allocated =
        target.context->device().AllocateMemory(size, RegionKind::kDevice, nullptr);
    if (!allocated.ok()) return allocated.failure().code;
    *address = *allocated;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    const auto region = Driver::Get().space().Find(address);
    if (!region || region->begin != address || region->kind != RegionKind::kDevice) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    target.context->Submit(
        target.stream,
        [device = Driver::Get().device(region->device), address] {
          return device->FreeMemory(address, RegionKind::kDevice);
        },
        Stream::Placement::kInlineIfIdle);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
