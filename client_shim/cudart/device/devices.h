#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

// Facts about the devices, known since the session's handshake. Call with the session open.
namespace torpor::shim {

// Whether the program sees a device of this index.
bool IsDevice(int device);

// Restores the default of cudaGetDeviceFlags (cudaDeviceReset).
void ResetDeviceFlags();

// An attribute of the first device; all devices of a function are alike. 0 without devices or if
// the daemon did not name the attribute.
int DeviceAttribute(cudaDeviceAttr attribute);

// The largest launch that a device takes: threads in each dimension, and threads of a block.
struct LaunchLimits {
  dim3 grid;
  dim3 block;
  std::uint64_t threads_per_block = 0;
};
const LaunchLimits& DeviceLaunchLimits();

}  // namespace torpor::shim
