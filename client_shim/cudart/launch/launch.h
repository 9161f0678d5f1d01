#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "client_shim/cudart/launch/packed_arguments.h"
#include "client_shim/cudart/module/modules.h"

namespace torpor::shim {

struct Launch {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
  std::uint32_t flags = 0;  // of wire::LaunchKernel
};

// What CUDA finds wrong with a launch of a prepared kernel before it is queued.
cudaError_t CheckLaunch(const Kernel& kernel, const Launch& launch);

// The arguments as the kernel takes them, at the begin of `packed`, which is kMaxParameterBytes
// long; `filled` bytes.
cudaError_t PackArguments(const Kernel& kernel, void** arguments, std::span<std::uint8_t> packed,
                          std::size_t& filled);

// Attributes that only tune are ignored; one that changes what the kernel does is refused.
cudaError_t ApplyAttribute(const cudaLaunchAttribute& attribute, Launch& launch);

}  // namespace torpor::shim
