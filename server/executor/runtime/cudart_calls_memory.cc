// Copies and fills.
#include <driver_types.h>

#include "server/executor/gpu/call_status.h"
#include "server/executor/runtime/cudart_calls.h"

namespace torpor::executor {

using cuda_api::Access;
using cuda_api::CallFailed;
using cuda_api::CallStatus;

namespace {

// Bytes from the first of `height` rows to the end of the last; false if that is no number.
bool Extent2D(Bytes pitch, Bytes width, Bytes height, Bytes& extent) {
  if (height == 0 || width > pitch) return false;
  Bytes before_last = 0;
  return !__builtin_mul_overflow(pitch, height - 1, &before_last) &&
         !__builtin_add_overflow(before_last, width, &extent);
}

}  // namespace

CUdeviceptr CudartCalls::DeviceMemory(std::uint64_t address, Bytes bytes, Access access) const {
  if (const CUdeviceptr found = memory_.Use(address, bytes, access); found != 0) return found;
  memory_.image().touches().UseAll();
  const CUdeviceptr variable = modules_.Translate(address);
  return modules_.OwnsVariable(variable, bytes) ? variable : 0;
}

const std::uint8_t* CudartCalls::PayloadBytes(wire::Payload kind, std::uint64_t offset, Bytes bytes,
                                              std::span<const std::uint8_t> data) const {
  switch (kind) {
    case wire::Payload::kInline:
      return data.size() == bytes ? data.data() : nullptr;
    case wire::Payload::kWindow:
      return memory_.window().Payload(offset, bytes);
    case wire::Payload::kArena:
      return memory_.Arena(offset, bytes);
  }
  return nullptr;
}

CallStatus CudartCalls::MemcpyHtoD(const wire::MemcpyHtoD& command) {
  return Marked(Upload(command), command.stream, command.slot, command.value);
}

CallStatus CudartCalls::Upload(const wire::MemcpyHtoD& command) {
  if (command.bytes == 0) return {};
  const std::uint8_t* source =
      PayloadBytes(command.payload, command.offset, command.bytes, command.data);
  const CUdeviceptr target = DeviceMemory(command.dst, command.bytes, Access::kWrite);
  if (source == nullptr || target == 0) return NotOwned("copy to the device");
  memory_.NoteUpload(command.dst, {source, command.bytes});
  CUstream stream = nullptr;
  CUresult result = streams_.Use(command.stream, stream);
  if (result == CUDA_SUCCESS) {
    result = driver().MemcpyHtoDAsync(target, source, command.bytes, stream);
  }
  if (result != CUDA_SUCCESS) return Outcome(result, "copy to the device");
  if (!memory_.image().Contains(command.dst, command.bytes)) {
    memory_.image().MarkDirty();  // a module's variable, saved with the whole, or pinned memory
    return {};
  }
  return ToCallStatus(memory_.image().SaveRange(command.dst, command.bytes, stream),
                      "saving an upload");
}

CallStatus CudartCalls::MemcpyDtoHArena(const wire::MemcpyDtoHArena& command) {
  std::uint8_t* destination = memory_.Arena(command.arena_offset, command.bytes);
  const CUdeviceptr source = DeviceMemory(command.src, command.bytes, Access::kRead);
  if (destination == nullptr || source == 0) return NotOwned("copy to pinned memory");
  CUstream stream = nullptr;
  CUresult result = streams_.Use(command.stream, stream);
  if (result == CUDA_SUCCESS) {
    result = driver().MemcpyDtoHAsync(destination, source, command.bytes, stream);
  }
  return Outcome(result, "copy to pinned memory");
}

CallStatus CudartCalls::MemcpyDtoD(const wire::MemcpyDtoD& command) {
  const CUdeviceptr target = DeviceMemory(command.dst, command.bytes, Access::kWrite);
  const CUdeviceptr source = DeviceMemory(command.src, command.bytes, Access::kRead);
  if (target == 0 || source == 0) return NotOwned("copy on the device");
  memory_.image().MarkDirty();
  CUstream stream = nullptr;
  CUresult result = streams_.Use(command.stream, stream);
  if (result == CUDA_SUCCESS) {
    result = driver().MemcpyDtoDAsync(target, source, command.bytes, stream);
  }
  return Outcome(result, "copy on the device");
}

bool CudartCalls::Side2D(wire::MemorySide side, std::uint64_t address, Bytes extent, Access access,
                         CUmemorytype& type, CUdeviceptr& device, void*& host) const {
  switch (side) {
    case wire::MemorySide::kDevice:
      type = CU_MEMORYTYPE_DEVICE;
      device = DeviceMemory(address, extent, access);
      return device != 0;
    case wire::MemorySide::kArena:
      type = CU_MEMORYTYPE_HOST;
      host = memory_.ArenaAt(address, extent);
      return host != nullptr;
    case wire::MemorySide::kArray:
      break;
  }
  return false;
}

CallStatus CudartCalls::Memcpy2D(const wire::Memcpy2D& command) {
  Bytes dst_extent = 0;
  Bytes src_extent = 0;
  CUDA_MEMCPY2D copy{};
  void* source = nullptr;
  if (!Extent2D(command.dst_pitch, command.width, command.height, dst_extent) ||
      !Extent2D(command.src_pitch, command.width, command.height, src_extent) ||
      !Side2D(command.src_side, command.src, src_extent, Access::kRead, copy.srcMemoryType,
              copy.srcDevice, source) ||
      !Side2D(command.dst_side, command.dst, dst_extent, Access::kWrite, copy.dstMemoryType,
              copy.dstDevice, copy.dstHost)) {
    return NotOwned("two-dimensional copy");
  }
  copy.srcHost = source;
  copy.srcPitch = command.src_pitch;
  copy.dstPitch = command.dst_pitch;
  copy.WidthInBytes = command.width;
  copy.Height = command.height;
  if (command.dst_side == wire::MemorySide::kDevice) memory_.image().MarkDirty();
  if (source != nullptr) memory_.image().NoteUnseenUpload(command.dst, dst_extent);
  CUstream stream = nullptr;
  CUresult result = streams_.Use(command.stream, stream);
  if (result == CUDA_SUCCESS) result = driver().Memcpy2DAsync(&copy, stream);
  return Outcome(result, "two-dimensional copy");
}

CallStatus CudartCalls::Memset(const wire::Memset& command) {
  Bytes bytes = 0;
  if (__builtin_mul_overflow(command.count, Bytes{command.element_bytes}, &bytes)) {
    return NotOwned("cudaMemset");
  }
  const CUdeviceptr target = DeviceMemory(command.dst, bytes, Access::kWrite);
  if (target == 0) return NotOwned("cudaMemset");
  memory_.image().MarkDirty();
  CUstream stream = nullptr;
  CUresult result = streams_.Use(command.stream, stream);
  if (result != CUDA_SUCCESS) return Outcome(result, "cudaMemset");
  switch (command.element_bytes) {
    case 1:
      result = driver().MemsetD8Async(target, static_cast<unsigned char>(command.value),
                                      command.count, stream);
      break;
    case 2:
      result = driver().MemsetD16Async(target, static_cast<unsigned short>(command.value),
                                       command.count, stream);
      break;
    case 4:
      result = driver().MemsetD32Async(target, command.value, command.count, stream);
      break;
    default:
      result = CUDA_ERROR_INVALID_VALUE;
  }
  return Outcome(result, "cudaMemset");
}

CallStatus CudartCalls::Memset2D(const wire::Memset2D& command) {
  Bytes row = 0;
  Bytes extent = 0;
  if (__builtin_mul_overflow(command.width, Bytes{command.element_bytes}, &row) ||
      !Extent2D(command.pitch, row, command.height, extent)) {
    return NotOwned("cudaMemset2D");
  }
  const CUdeviceptr target = DeviceMemory(command.dst, extent, Access::kWrite);
  if (target == 0) return NotOwned("cudaMemset2D");
  memory_.image().MarkDirty();
  CUstream stream = nullptr;
  CUresult result = streams_.Use(command.stream, stream);
  if (result != CUDA_SUCCESS) return Outcome(result, "cudaMemset2D");
  const CudaDriver& cuda = driver();
  switch (command.element_bytes) {
    case 1:
      result =
          cuda.MemsetD2D8Async(target, command.pitch, static_cast<unsigned char>(command.value),
                               command.width, command.height, stream);
      break;
    case 2:
      result =
          cuda.MemsetD2D16Async(target, command.pitch, static_cast<unsigned short>(command.value),
                                command.width, command.height, stream);
      break;
    case 4:
      result = cuda.MemsetD2D32Async(target, command.pitch, command.value, command.width,
                                     command.height, stream);
      break;
    default:
      result = CUDA_ERROR_INVALID_VALUE;
  }
  return Outcome(result, "cudaMemset2D");
}

CallStatus CudartCalls::MemcpyToSymbol(const wire::MemcpyToSymbol& command) {
  return Marked(WriteSymbol(command), command.stream, command.slot, command.value);
}

CallStatus CudartCalls::WriteSymbol(const wire::MemcpyToSymbol& command) {
  CUdeviceptr target = 0;
  CallStatus used = UseVariableBytes(command.module, command.variable, command.variable_offset,
                                     command.bytes, target);
  if (!used.ok()) return used;
  const bool from_device = command.device_source != 0;
  const CUdeviceptr device_source =
      from_device ? DeviceMemory(command.device_source, command.bytes, Access::kRead) : 0;
  const std::uint8_t* source =
      from_device ? nullptr
                  : PayloadBytes(command.payload, command.offset, command.bytes, command.data);
  if (device_source == 0 && source == nullptr) return NotOwned("cudaMemcpyToSymbol");
  memory_.image().MarkDirty();
  CUstream stream = nullptr;
  CUresult result = streams_.Use(command.stream, stream);
  if (result == CUDA_SUCCESS) {
    result = from_device ? driver().MemcpyDtoDAsync(target, device_source, command.bytes, stream)
                         : driver().MemcpyHtoDAsync(target, source, command.bytes, stream);
  }
  return Outcome(result, "cudaMemcpyToSymbol");
}

CallStatus CudartCalls::MemcpyDtoH(const wire::MemcpyDtoH& command,
                                   wire::MemcpyDtoHResult& result) {
  const CUdeviceptr source = DeviceMemory(command.src, command.bytes, Access::kRead);
  if (source == 0) return NotOwned("copy to the host");
  return Download(source, command.stream, command.bytes, command.window_offset, result.data);
}

CallStatus CudartCalls::MemcpyFromSymbol(const wire::MemcpyFromSymbol& command,
                                         wire::MemcpyFromSymbolResult& result) {
  CUdeviceptr source = 0;
  CallStatus used = UseVariableBytes(command.module, command.variable, command.variable_offset,
                                     command.bytes, source);
  if (!used.ok()) return used;
  return Download(source, command.stream, command.bytes, command.window_offset, result.data);
}

CallStatus CudartCalls::Download(CUdeviceptr source, std::uint64_t stream_id, Bytes bytes,
                                 std::uint64_t window_offset, std::vector<std::uint8_t>& data) {
  std::uint8_t* destination = nullptr;
  if (window_offset != wire::kReplyInline) {
    destination = memory_.window().Payload(window_offset, bytes);
    if (destination == nullptr) return NotOwned("copy to the host");
  } else if (bytes <= wire::kMaxInlineBytes) {
    data.resize(bytes);
    destination = data.data();
  } else {
    return CallFailed(cudaErrorInvalidValue, "a reply has no room for that many bytes");
  }
  CUstream stream = nullptr;
  CUresult result = streams_.Use(stream_id, stream);
  if (result == CUDA_SUCCESS && bytes > 0) {
    result = driver().MemcpyDtoHAsync(destination, source, bytes, stream);
  }
  if (result == CUDA_SUCCESS) result = driver().StreamSynchronize(stream);
  return Outcome(result, "copy to the host");
}

}  // namespace torpor::executor
