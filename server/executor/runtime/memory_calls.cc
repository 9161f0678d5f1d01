#include "server/executor/runtime/memory_calls.h"

#include <optional>

#include "server/executor/gpu/call_status.h"

namespace torpor::executor {

using cuda_api::Access;
using cuda_api::CallStatus;

namespace {

// Bytes from the first of `height` rows to the end of the last; false if that overflows or rows
// overlap.
bool Extent2D(Bytes pitch, Bytes width, Bytes height, Bytes& extent) {
  if (height == 0 || width > pitch) return false;
  Bytes before_last = 0;
  return !__builtin_mul_overflow(pitch, height - 1, &before_last) &&
         !__builtin_add_overflow(before_last, width, &extent);
}

}  // namespace

CallStatus MemoryCalls::MemcpyHtoD(const wire::MemcpyHtoD& command) {
  return parts_.marks.Write(Upload(command), command.stream, command.slot, command.value);
}

CallStatus MemoryCalls::Upload(const wire::MemcpyHtoD& command) {
  if (command.bytes == 0) return {};
  const std::uint8_t* source =
      parts_.memory.Payload(command.payload, command.offset, command.bytes, command.data);
  const CUdeviceptr target = parts_.memory.Device(command.dst, command.bytes, Access::kWrite);
  if (source == nullptr || target == 0) return NotOwned("copy to the device");
  parts_.session_memory.NoteUpload(command.dst, {source, command.bytes});
  CUstream stream = nullptr;
  CUresult result = parts_.streams.Use(command.stream, stream);
  auto saver = UploadSaves::Saver::kWriteBack;
  if (result == CUDA_SUCCESS) {
    saver = saves_.SaverOf(command.dst, command.bytes, command.payload, stream);
    result = driver().MemcpyHtoDAsync(target, source, command.bytes, stream);
  }
  if (result != CUDA_SUCCESS) return ToCallStatus(driver(), result, "copy to the device");
  const absl::Status saved = saves_.Save(saver, command.dst, {source, command.bytes}, stream);
  // A replay makes other uploads again, whatever is said here, and sends one that came through the
  // window as parts, of which the last one's word must not stand for all.
  const bool is_final = saved.ok() && saver == UploadSaves::Saver::kProcessor &&
                        command.payload == wire::Payload::kWindow;
  if (!is_final && image().Contains(command.dst, command.bytes)) {
    image().uploads().NoteRepeated(command.dst, command.bytes);
  }
  parts_.session_memory.window().NoteUpload(command.slot, is_final);
  return ToCallStatus(saved, "saving an upload");
}

CallStatus MemoryCalls::MemcpyDtoH(const wire::MemcpyDtoH& command,
                                   wire::MemcpyDtoHResult& result) {
  const CUdeviceptr source = parts_.memory.Device(command.src, command.bytes, Access::kRead);
  if (source == 0) return NotOwned("copy to the host");
  return parts_.downloads.Copy(source, command.stream, command.bytes, command.window_offset,
                               result.data);
}

CallStatus MemoryCalls::MemcpyDtoHArena(const wire::MemcpyDtoHArena& command) {
  std::uint8_t* destination = parts_.session_memory.Arena(command.arena_offset, command.bytes);
  const CUdeviceptr source = parts_.memory.Device(command.src, command.bytes, Access::kRead);
  if (destination == nullptr || source == 0) return NotOwned("copy to pinned memory");
  CUstream stream = nullptr;
  CUresult result = parts_.streams.Use(command.stream, stream);
  if (result == CUDA_SUCCESS) {
    result = driver().MemcpyDtoHAsync(destination, source, command.bytes, stream);
  }
  return ToCallStatus(driver(), result, "copy to pinned memory");
}

CallStatus MemoryCalls::MemcpyDtoD(const wire::MemcpyDtoD& command) {
  const CUdeviceptr target = parts_.memory.Device(command.dst, command.bytes, Access::kWrite);
  const CUdeviceptr source = parts_.memory.Device(command.src, command.bytes, Access::kRead);
  if (target == 0 || source == 0) return NotOwned("copy on the device");
  image().MarkDirty();
  CUstream stream = nullptr;
  CUresult result = parts_.streams.Use(command.stream, stream);
  if (result == CUDA_SUCCESS) {
    result = driver().MemcpyDtoDAsync(target, source, command.bytes, stream);
  }
  return ToCallStatus(driver(), result, "copy on the device");
}

CallStatus MemoryCalls::Memcpy2D(const wire::Memcpy2D& command) {
  Bytes dst_extent = 0;
  Bytes src_extent = 0;
  if (!Extent2D(command.dst_pitch, command.width, command.height, dst_extent) ||
      !Extent2D(command.src_pitch, command.width, command.height, src_extent)) {
    return NotOwned("two-dimensional copy");
  }
  const std::optional<CommandMemory::Side> source =
      parts_.memory.LinearSide(command.src_side, command.src, src_extent, Access::kRead);
  if (!source) return NotOwned("two-dimensional copy");
  const std::optional<CommandMemory::Side> target =
      parts_.memory.LinearSide(command.dst_side, command.dst, dst_extent, Access::kWrite);
  if (!target) return NotOwned("two-dimensional copy");
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = source->type;
  copy.srcDevice = source->device;
  copy.srcHost = source->host;
  copy.dstMemoryType = target->type;
  copy.dstDevice = target->device;
  copy.dstHost = target->host;
  copy.srcPitch = command.src_pitch;
  copy.dstPitch = command.dst_pitch;
  copy.WidthInBytes = command.width;
  copy.Height = command.height;
  if (command.dst_side == wire::MemorySide::kDevice) image().MarkDirty();
  if (source->host != nullptr && image().Contains(command.dst, dst_extent)) {
    image().uploads().NoteUnseen(command.dst, dst_extent);
  }
  CUstream stream = nullptr;
  CUresult result = parts_.streams.Use(command.stream, stream);
  if (result == CUDA_SUCCESS) result = driver().Memcpy2DAsync(&copy, stream);
  return ToCallStatus(driver(), result, "two-dimensional copy");
}

CallStatus MemoryCalls::Memset(const wire::Memset& command) {
  Bytes bytes = 0;
  if (__builtin_mul_overflow(command.count, Bytes{command.element_bytes}, &bytes)) {
    return NotOwned("cudaMemset");
  }
  const CUdeviceptr target = parts_.memory.Device(command.dst, bytes, Access::kWrite);
  if (target == 0) return NotOwned("cudaMemset");
  image().MarkDirty();
  CUstream stream = nullptr;
  CUresult result = parts_.streams.Use(command.stream, stream);
  if (result != CUDA_SUCCESS) return ToCallStatus(driver(), result, "cudaMemset");
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
  return ToCallStatus(driver(), result, "cudaMemset");
}

CallStatus MemoryCalls::Memset2D(const wire::Memset2D& command) {
  Bytes row = 0;
  Bytes extent = 0;
  if (__builtin_mul_overflow(command.width, Bytes{command.element_bytes}, &row) ||
      !Extent2D(command.pitch, row, command.height, extent)) {
    return NotOwned("cudaMemset2D");
  }
  const CUdeviceptr target = parts_.memory.Device(command.dst, extent, Access::kWrite);
  if (target == 0) return NotOwned("cudaMemset2D");
  image().MarkDirty();
  CUstream stream = nullptr;
  CUresult result = parts_.streams.Use(command.stream, stream);
  if (result != CUDA_SUCCESS) return ToCallStatus(driver(), result, "cudaMemset2D");
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
  return ToCallStatus(driver(), result, "cudaMemset2D");
}

}  // namespace torpor::executor
