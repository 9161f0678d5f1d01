#include "client_shim/cuda/devices.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "client_shim/cuda/entry.h"
#include "client_shim/cudart/device/device_attributes.h"

namespace torpor::shim {
namespace {

const std::vector<wire::DeviceDescription>& Devices() { return torpor_client_core()->devices(); }

const wire::DeviceDescription& Description(CUdevice device) {
  return Devices()[static_cast<std::size_t>(device)];
}

// Attributes of features that the runtime or the device has, but this API does not offer.
bool IsWithheld(CUdevice_attribute attribute) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
    // There is no cuMemAllocManaged.
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
      return true;
    default:
      return false;
  }
}

}  // namespace

CUresult GetDeviceCount(int* count) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(Devices().size());
  return CUDA_SUCCESS;
}

CUresult CheckDevice(CUdevice device) {
  const bool exists = device >= 0 && static_cast<std::size_t>(device) < Devices().size();
  return exists ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult GetDevice(CUdevice* device, int ordinal) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  TORPOR_CU_TRY(CheckDevice(ordinal));
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult GetDeviceName(char* name, int bytes, CUdevice device) {
  if (!name || bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
  TORPOR_CU_TRY(CheckDevice(device));
  const std::string& full = Description(device).name;
  const std::size_t length = std::min(full.size(), static_cast<std::size_t>(bytes) - 1);
  std::memcpy(name, full.data(), length);
  name[length] = '\0';
  return CUDA_SUCCESS;
}

CUresult GetDeviceUuid(CUuuid* uuid, CUdevice device) {
  if (!uuid) return CUDA_ERROR_INVALID_VALUE;
  TORPOR_CU_TRY(CheckDevice(device));
  std::memcpy(uuid->bytes, Description(device).uuid.data(), sizeof uuid->bytes);
  return CUDA_SUCCESS;
}

CUresult GetDeviceMemory(std::size_t* bytes, CUdevice device) {
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  TORPOR_CU_TRY(CheckDevice(device));
  *bytes = Description(device).total_bytes;
  return CUDA_SUCCESS;
}

CUresult GetDeviceAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (!value || attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
    return CUDA_ERROR_INVALID_VALUE;
  TORPOR_CU_TRY(CheckDevice(device));
  // Both enumerations have the same numbers.
  const auto same = static_cast<cudaDeviceAttr>(attribute);
  *value = IsWithheld(attribute) ? 0 : AttributeOf(Description(device), same);
  return CUDA_SUCCESS;
}

CUresult GetComputeCapability(int* major, int* minor, CUdevice device) {
  TORPOR_CU_TRY(GetDeviceAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  return GetDeviceAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

}  // namespace torpor::shim
