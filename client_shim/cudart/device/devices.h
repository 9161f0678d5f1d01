#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

// What is known of the device since the session's handshake. The session is open.
namespace torpor::shim {

// Whether the program sees a device of this index.
bool IsDevice(int device);

// cudaGetDeviceFlags gives the default again, for cudaDeviceReset.
void ResetDeviceFlags();

// 0 for an attribute that the daemon did not name.
int DeviceAttribute(cudaDeviceAttr attribute);

struct LaunchLimits {
  dim3 grid;
  dim3 block;
  std::uint64_t threads_per_block = 0;
};
const LaunchLimits& DeviceLaunchLimits();

}  // namespace torpor::shim
