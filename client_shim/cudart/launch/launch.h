#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "client_shim/cudart/launch/packed_arguments.h"
#include "client_shim/cudart/module/modules.h"
#include "proto/cuda_api/cudart_commands.h"

namespace torpor::shim {

// The configuration of a launch.
struct Launch {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
  std::uint32_t flags = 0;  // of wire::LaunchKernel, with the clusters
};

// Checks a launch of a prepared kernel against the limits of device and kernel, with CUDA's errors.
cudaError_t CheckLaunch(const ClientKernel& kernel, const Launch& launch);

// Copies the arguments to their places in the kernel's parameter buffer. `packed` has
// kMaxParameterBytes, of which the first `filled` are written.
cudaError_t PackArguments(const ClientKernel& kernel, void** arguments,
                          std::span<std::uint8_t> packed, std::size_t& filled);

// The command of a launch on the device in use, without its stream. Refers to `parameters`.
wire::LaunchKernel LaunchCommand(const ClientKernel& kernel, const Launch& launch,
                                 std::span<const std::uint8_t> parameters);

// Applies a launch attribute. Ignores attributes that only tune; warns and returns
// cudaErrorNotSupported for unsupported attributes that change the kernel's effect.
// cudaErrorInvalidClusterSize for a cluster larger than any device's.
cudaError_t ApplyAttribute(const cudaLaunchAttribute& attribute, Launch& launch);

}  // namespace torpor::shim
