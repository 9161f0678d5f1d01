// Initialisation and devices.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "emulator/driver/api/api.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

// Copies with truncation, always ending with NUL.
void CopyText(const std::string& text, char* target, int size) {
  const std::size_t count = std::min(text.size(), static_cast<std::size_t>(size - 1));
  std::memcpy(target, text.data(), count);
  target[count] = '\0';
}

// As of real GPUs: all of a node reach each other, but only NVLinks carry atomic operations.
int PeerAttribute(CUdevice_P2PAttribute attribute, unsigned place, unsigned peer) {
  const Topology& topology = Driver::Get().topology();
  switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
      return static_cast<int>(PeerRank(topology, place, peer));
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
      return 1;
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
      return topology.nvlinks.Between(place, peer) != 0 ? 1 : 0;
    default:
      return 0;
  }
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  try {
    return Driver::Get().Initialize();
  } catch (...) {
    return AfterException();
  }
}

CUresult CUDAAPI cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = 13000;
  return CUDA_SUCCESS;
}

int torporEmulatorComputes() { return Driver::Get().topology().computes ? 1 : 0; }

CUresult CUDAAPI cuDeviceGetCount(int* count) {
  return Call([&](Driver& driver) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(driver.devices().size());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  return OnDevice(ordinal, [&](DriverDevice& found) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = found.index();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetName(char* name, int size, CUdevice device) {
  return OnDevice(device, [&](DriverDevice& found) {
    if (name == nullptr || size <= 0) return CUDA_ERROR_INVALID_VALUE;
    CopyText(found.spec().name, name, size);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return OnDevice(device, [&](DriverDevice& found) {
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *uuid = found.uuid();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  return OnDevice(device, [&](DriverDevice& found) {
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = found.spec().memory;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return OnDevice(device, [&](DriverDevice& found) {
    const auto answer = found.Attribute(attribute);
    if (value == nullptr || !answer) return CUDA_ERROR_INVALID_VALUE;
    *value = *answer;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return OnDevice(device, [&](DriverDevice& found) {
    if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *major = static_cast<int>(found.spec().compute_capability / 10);
    *minor = static_cast<int>(found.spec().compute_capability % 10);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char* id, int size, CUdevice device) {
  return OnDevice(device, [&](DriverDevice& found) {
    if (id == nullptr || size <= 0) return CUDA_ERROR_INVALID_VALUE;
    CopyText(ToText(found.pci_address()), id, size);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  return Call([&](Driver& driver) {
    if (device == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& candidate : driver.devices()) {
      const PciAddress address = candidate->pci_address();
      const std::string own = ToText(address);
      // The domain, if it is 0, or the function may be left out.
      const bool is_it = own == id || own.substr(0, own.size() - 2) == id ||
                         (address.domain == 0 && own.substr(5) == id);
      if (!is_it) continue;
      *device = candidate->index();
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult CUDAAPI cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return OnDevice(device, [&](DriverDevice&) {
    if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (Driver::Get().device(peer) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice from,
                                         CUdevice to) {
  return OnDevice(from, [&](DriverDevice& device) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const DriverDevice* const peer = Driver::Get().device(to);
    if (peer == nullptr || from == to) return CUDA_ERROR_INVALID_DEVICE;
    *value = PeerAttribute(attribute, device.spec().place, peer->spec().place);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
