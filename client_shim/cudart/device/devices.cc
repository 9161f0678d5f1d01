#include "client_shim/cudart/device/devices.h"

#include <atomic>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/device/device_attributes.h"
#include "client_shim/cudart/device/device_properties.h"
#include "client_shim/cudart/device/pci_bus_id.h"

namespace torpor::shim {
namespace {

std::atomic<unsigned> device_flags{cudaDeviceScheduleAuto};

// The visible devices in CUDA order, as the daemon described them at the handshake.
const std::vector<wire::DeviceDescription>& Devices() { return Core().devices(); }

// Opens the device's session and makes the device current for the thread.
cudaError_t SetDevice(int device) {
  TORPOR_TRY(Begin());
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  ClientCore& core = *Core().OfDevice(device);
  TORPOR_TRY(core.Start());
  core.MakeCurrent();
  thread_cores.current = {&core, device};
  return cudaSuccess;
}

// Answers without the GPU, and so despite a sticky error (BeginQuestion).
cudaError_t GetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!value || attribute <= 0 || attribute >= cudaDevAttrMax) return cudaErrorInvalidValue;
  TORPOR_TRY(BeginQuestion());
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  *value = AttributeOf(Devices()[static_cast<std::size_t>(device)], attribute);
  return cudaSuccess;
}

// The version of the function's devices, even if CUDA_VISIBLE_DEVICES hides them all; then the
// daemon is asked without opening a session.
cudaError_t GetDriverVersion(int* version) {
  if (!version) return cudaErrorInvalidValue;
  const cudaError_t error = Begin();
  if (error == cudaSuccess) {
    *version = Devices().empty() ? 0 : Devices().front().driver_version;
    return cudaSuccess;
  }
  wire::InquiryReply reply;
  if (error != cudaErrorNoDevice || Core().Inquire(reply) != cudaSuccess) return error;
  *version = reply.devices.empty() ? 0 : reply.devices.front().driver_version;
  return cudaSuccess;
}

// Writes as much of the PCI bus id as fits; cudaErrorInvalidValue if the buffer is too short.
cudaError_t GetPciBusId(char* out, int length, int device) {
  if (!out || length <= 0) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  const std::string& id = Devices()[static_cast<std::size_t>(device)].pci_bus_id;
  std::snprintf(out, static_cast<std::size_t>(length), "%s", id.c_str());
  return id.size() < static_cast<std::size_t>(length) ? cudaSuccess : cudaErrorInvalidValue;
}

// Finds a device by PCI bus id in any notation of ParsePciBusId.
cudaError_t GetByPciBusId(int* device, const char* id) {
  if (!device || !id) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  const std::optional<PciBusId> wanted = ParsePciBusId(id);
  if (!wanted) return cudaErrorInvalidDevice;
  for (std::size_t i = 0; i < Devices().size(); ++i) {
    if (ParsePciBusId(Devices()[i].pci_bus_id.c_str()) != wanted) continue;
    *device = static_cast<int>(i);
    return cudaSuccess;
  }
  return cudaErrorInvalidDevice;
}

}  // namespace

bool IsDevice(int device) {
  return device >= 0 && static_cast<std::size_t>(device) < Devices().size();
}

void ResetDeviceFlags() { device_flags = cudaDeviceScheduleAuto; }

int DeviceAttribute(cudaDeviceAttr attribute) {
  return Devices().empty() ? 0 : AttributeOf(Devices().front(), attribute);
}

const LaunchLimits& DeviceLaunchLimits() {
  const auto limit = [](cudaDeviceAttr attribute) {
    return static_cast<unsigned>(DeviceAttribute(attribute));
  };
  static const LaunchLimits limits{
      dim3(limit(cudaDevAttrMaxGridDimX), limit(cudaDevAttrMaxGridDimY),
           limit(cudaDevAttrMaxGridDimZ)),
      dim3(limit(cudaDevAttrMaxBlockDimX), limit(cudaDevAttrMaxBlockDimY),
           limit(cudaDevAttrMaxBlockDimZ)),
      limit(cudaDevAttrMaxThreadsPerBlock)};
  return limits;
}

}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaGetDeviceCount(int* count) {
  return Entry([&]() -> cudaError_t {
    if (!count) return cudaErrorInvalidValue;
    *count = 0;
    TORPOR_TRY(BeginQuestion());
    *count = static_cast<int>(Devices().size());
    return Devices().empty() ? cudaErrorNoDevice : cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return Entry([&]() -> cudaError_t {
    if (!device) return cudaErrorInvalidValue;
    TORPOR_TRY(BeginQuestion());
    *device = DeviceInUse();
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return Entry([&] { return SetDevice(device); });
}

// Opens the session of a device without making the device current. Ignores the flags.
cudaError_t cudaInitDevice(int device, unsigned int, unsigned int) {
  return Entry([&]() -> cudaError_t {
    TORPOR_TRY(Begin());
    return IsDevice(device) ? Core().OfDevice(device)->Start() : cudaErrorInvalidDevice;
  });
}

// All devices are alike, so the first of the program's list becomes current.
cudaError_t cudaSetValidDevices(int* devices, int count) {
  return Entry([&]() -> cudaError_t {
    if (count < 0 || (count > 0 && !devices)) return cudaErrorInvalidValue;
    TORPOR_TRY(Begin());
    for (int i = 0; i < count; ++i)
      if (!IsDevice(devices[i])) return cudaErrorInvalidDevice;
    return count > 0 ? SetDevice(devices[0]) : cudaSuccess;
  });
}

cudaError_t cudaChooseDevice(int* device, const struct cudaDeviceProp* wanted) {
  return Entry([&]() -> cudaError_t {
    if (!device || !wanted) return cudaErrorInvalidValue;
    TORPOR_TRY(Begin());
    *device = 0;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* properties, int device) {
  return Entry([&]() -> cudaError_t {
    if (!properties) return cudaErrorInvalidValue;
    TORPOR_TRY(Begin());
    if (!IsDevice(device)) return cudaErrorInvalidDevice;
    *properties = DeviceProperties(Devices()[static_cast<std::size_t>(device)]);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attribute, int device) {
  return Entry([&] { return GetAttribute(value, attribute, device); });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  // The range of every GPU since Pascal.
  constexpr int kGreatest = -5;
  return Entry([&]() -> cudaError_t {
    TORPOR_TRY(Begin());
    if (least) *least = 0;
    if (greatest) *greatest = kGreatest;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return Entry([&] { return GetPciBusId(id, length, device); });
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
  return Entry([&] { return GetByPciBusId(device, id); });
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  return Entry([&] {
    if ((flags & ~unsigned{cudaDeviceMask}) != 0) return cudaErrorInvalidValue;
    device_flags = flags;
    return cudaSuccess;
  });
}

// Always adds cudaDeviceMapHost: all pinned memory is mapped.
cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
  return Entry([&] {
    if (!flags) return cudaErrorInvalidValue;
    *flags = device_flags | cudaDeviceMapHost;
    return cudaSuccess;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  return Entry([&] { return GetDriverVersion(version); });
}
