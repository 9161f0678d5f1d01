#pragma once

#include <cuda.h>

#include <cstddef>

namespace torpor::shim {

CUresult GetDeviceCount(int* count);
CUresult GetDevice(CUdevice* device, int ordinal);
// Returns CUDA_ERROR_INVALID_DEVICE unless `device` exists.
CUresult CheckDevice(CUdevice device);
CUresult GetDeviceName(char* name, int bytes, CUdevice device);
CUresult GetDeviceUuid(CUuuid* uuid, CUdevice device);
CUresult GetDeviceMemory(std::size_t* bytes, CUdevice device);
CUresult GetDeviceAttribute(int* value, CUdevice_attribute attribute, CUdevice device);
CUresult GetComputeCapability(int* major, int* minor, CUdevice device);

}  // namespace torpor::shim
