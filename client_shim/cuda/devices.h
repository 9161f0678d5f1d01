#pragma once

#include <cuda.h>

#include <cstddef>

namespace torpor::shim {

// The program's devices; a CUdevice is the index in ClientCore::devices(). All answers come from
// the daemon's description, without a lease.
CUresult GetDeviceCount(int* count);
CUresult GetDevice(CUdevice* device, int ordinal);
// Returns CUDA_ERROR_INVALID_DEVICE unless `device` exists.
CUresult CheckDevice(CUdevice device);
// Copies the name with a terminating NUL, cut to `bytes` bytes.
CUresult GetDeviceName(char* name, int bytes, CUdevice device);
CUresult GetDeviceUuid(CUuuid* uuid, CUdevice device);
// The total memory in bytes.
CUresult GetDeviceMemory(std::size_t* bytes, CUdevice device);
// Zero for features that this API does not offer.
CUresult GetDeviceAttribute(int* value, CUdevice_attribute attribute, CUdevice device);
CUresult GetComputeCapability(int* major, int* minor, CUdevice device);

}  // namespace torpor::shim
