#include "server/executor/runtime/downloads.h"

#include <driver_types.h>

#include <cstring>

#include "proto/cuda_api/cudart_commands.h"
#include "proto/wire/result_hash.h"
#include "server/executor/gpu/call_status.h"

namespace torpor::executor {
namespace {

constexpr Bytes kMostHashed = 64 * kMiB;

}  // namespace

cuda_api::CallStatus Downloads::Copy(CUdeviceptr source, std::uint64_t stream_id, Bytes bytes,
                                     std::uint64_t window_offset, std::vector<std::uint8_t>& data) {
  std::uint8_t* destination = nullptr;
  if (window_offset == wire::kReplyHash) {
    // As much as a program asks for at a time.
    if (bytes > kMostHashed) return NotOwned("copy to the host");
    std::vector<std::uint8_t> copy(bytes);
    const CUresult fetched = Fetch(source, stream_id, bytes, copy.data());
    const std::uint64_t hash = wire::ResultHash(copy);
    data.resize(sizeof hash);
    std::memcpy(data.data(), &hash, sizeof hash);
    return ToCallStatus(device_.driver(), fetched, "copy to the host");
  }
  if (window_offset != wire::kReplyInline) {
    destination = window_.Payload(window_offset, bytes);
    if (destination == nullptr) return NotOwned("copy to the host");
  } else if (bytes <= wire::kMaxInlineBytes) {
    data.resize(bytes);
    destination = data.data();
  } else {
    return cuda_api::CallFailed(cudaErrorInvalidValue, "a reply has no room for that many bytes");
  }
  return ToCallStatus(device_.driver(), Fetch(source, stream_id, bytes, destination),
                      "copy to the host");
}

CUresult Downloads::Fetch(CUdeviceptr source, std::uint64_t stream_id, Bytes bytes,
                          std::uint8_t* destination) {
  const CudaDriver& driver = device_.driver();
  CUstream stream = nullptr;
  CUresult result = streams_.Use(stream_id, stream);
  if (result == CUDA_SUCCESS && bytes > 0) {
    result = driver.MemcpyDtoHAsync(destination, source, bytes, stream);
  }
  return result == CUDA_SUCCESS ? streams_.Wait(stream) : result;
}

}  // namespace torpor::executor
