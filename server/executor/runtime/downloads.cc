#include "server/executor/runtime/downloads.h"

#include <driver_types.h>

#include "proto/cuda_api/cudart_commands.h"
#include "server/executor/gpu/call_status.h"

namespace torpor::executor {

cuda_api::CallStatus Downloads::Copy(CUdeviceptr source, std::uint64_t stream_id, Bytes bytes,
                                     std::uint64_t window_offset, std::vector<std::uint8_t>& data) {
  std::uint8_t* destination = nullptr;
  if (window_offset != wire::kReplyInline) {
    destination = window_.Payload(window_offset, bytes);
    if (destination == nullptr) return NotOwned("copy to the host");
  } else if (bytes <= wire::kMaxInlineBytes) {
    data.resize(bytes);
    destination = data.data();
  } else {
    return cuda_api::CallFailed(cudaErrorInvalidValue, "a reply has no room for that many bytes");
  }
  const CudaDriver& driver = device_.driver();
  CUstream stream = nullptr;
  CUresult result = streams_.Use(stream_id, stream);
  if (result == CUDA_SUCCESS && bytes > 0) {
    result = driver.MemcpyDtoHAsync(destination, source, bytes, stream);
  }
  if (result == CUDA_SUCCESS) result = streams_.Wait(stream);
  return ToCallStatus(driver, result, "copy to the host");
}

}  // namespace torpor::executor
