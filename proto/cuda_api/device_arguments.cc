#include "proto/cuda_api/device_arguments.h"

namespace torpor::cuda_api {

DeviceArgument::DeviceArgument(CallMemory& memory, std::uint64_t address, std::uint64_t bytes,
                               Access access) {
  if (bytes == 0) return;
  pointer_ = memory.Resolve(address, bytes, access);
  ok_ = pointer_ != nullptr;
}

}  // namespace torpor::cuda_api
