#include "client_shim/cudart/devices.h"

#include <cstdio>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "client_shim/cudart/arrays.h"
#include "client_shim/cudart/device_attributes.h"
#include "client_shim/cudart/device_properties.h"
#include "client_shim/cudart/entry.h"
#include "client_shim/cudart/events.h"
#include "client_shim/cudart/graph/capture.h"
#include "client_shim/cudart/graph/graph_exec.h"
#include "client_shim/cudart/graph/graph_memory.h"
#include "client_shim/cudart/host_functions.h"
#include "client_shim/cudart/host_register.h"
#include "client_shim/cudart/image_objects.h"
#include "client_shim/cudart/managed_memory.h"
#include "client_shim/cudart/managed_variables.h"
#include "client_shim/cudart/memory_kinds.h"
#include "client_shim/cudart/memory_pools.h"
#include "client_shim/cudart/modules.h"
#include "client_shim/cudart/pci_bus_id.h"
#include "client_shim/cudart/streams.h"

namespace torpor::shim {
namespace {

std::atomic<unsigned> device_flags{cudaDeviceScheduleAuto};

const std::vector<wire::DeviceDescription>& Devices() { return Core().devices(); }

bool IsDevice(int device) {
  return device >= 0 && static_cast<std::size_t>(device) < Devices().size();
}

cudaError_t SetDevice(int device) {
  TORPOR_TRY(Begin());
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  ClientCore& core = *Core().OfDevice(device);
  TORPOR_TRY(core.Start());
  core.MakeCurrent();
  thread_cores.current = {&core, device};
  return cudaSuccess;
}

cudaError_t GetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!value || attribute <= 0 || attribute >= cudaDevAttrMax) return cudaErrorInvalidValue;
  TORPOR_TRY(BeginQuestion());
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  *value = AttributeOf(Devices()[static_cast<std::size_t>(device)], attribute);
  return cudaSuccess;
}

// That of the function's devices, whether the program sees any or not.
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

cudaError_t GetPciBusId(char* out, int length, int device) {
  if (!out || length <= 0) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  const std::string& id = Devices()[static_cast<std::size_t>(device)].pci_bus_id;
  std::snprintf(out, static_cast<std::size_t>(length), "%s", id.c_str());
  return id.size() < static_cast<std::size_t>(length) ? cudaSuccess : cudaErrorInvalidValue;
}

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

cudaError_t AwaitDevice() {
  if (Core().IsDrained()) return Core().TakeAsyncError();
  const std::uint64_t commands = Core().CommandCount();
  TORPOR_TRY(Ask(wire::DeviceSynchronize{}));
  NoteIdleDevice(commands + 1);
  return cudaSuccess;
}

cudaError_t SynchronizeDevice() {
  TORPOR_TRY(Begin());
  TORPOR_TRY(RefuseUnsafe());
  TORPOR_TRY(AwaitAllHostFunctions());
  TORPOR_TRY(AwaitDevice());
  TORPOR_TRY(ReleasePoolMemory());
  return FetchManagedVariables();
}

bool IsOfThisDevice(std::uint64_t address) {
  ClientCore::Allocation allocation;
  return Core().FindAllocation(address, allocation) && allocation.device == DeviceInUse();
}

// Memory of one device is where the others reach it from the start: what is enabled is only
// remembered.
class Peers {
 public:
  // False: it was so already.
  bool Enable(int device, int peer) {
    std::lock_guard lock(mutex_);
    return enabled_.insert({device, peer}).second;
  }
  bool Disable(int device, int peer) {
    std::lock_guard lock(mutex_);
    return enabled_.erase({device, peer}) > 0;
  }
  void DisableAll(int device) {
    std::lock_guard lock(mutex_);
    std::erase_if(enabled_, [&](const auto& pair) { return pair.first == device; });
  }

 private:
  std::mutex mutex_;
  std::set<std::pair<int, int>> enabled_;  // device and peer
};

Peers& ThePeers() {
  static auto* const peers = new Peers();
  return *peers;
}

// Everything that the process has on the current device goes. What remains: the session, the
// limits, and handles of the other libraries, which CUDA leaves undefined.
cudaError_t ResetDevice() {
  TORPOR_TRY(SynchronizeDevice());
  AbandonCaptures();
  GraphExec::DestroyAll();
  TORPOR_TRY(DestroyAllEvents());
  TORPOR_TRY(DestroyAllStreams());
  TORPOR_TRY(DestroyAllImageObjects());
  TORPOR_TRY(DestroyAllArrays());
  TORPOR_TRY(UnloadAllModules());
  ForgetSymbolAddresses();
  ForgetPools();
  ForgetGraphMemory();
  TheManagedRanges().RemoveIf(IsOfThisDevice);
  ThePeers().DisableAll(DeviceInUse());
  device_flags = cudaDeviceScheduleAuto;
  // Nothing that the executor still knows may name the memory.
  TORPOR_TRY(Ask(wire::DeviceSynchronize{}));
  TORPOR_TRY(UnregisterAll());
  TORPOR_TRY(Core().FreeAll());
  return ResetManagedVariables();
}

// Limits are journalled like objects, each under a handle of its own.
constexpr std::uint64_t kLimitHandles = std::uint64_t{0xff} << kHandleSerialBits;

cudaError_t SetLimit(cudaLimit limit, std::size_t value) {
  if (limit < 0 || limit > cudaLimitPersistingL2CacheSize) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  const std::uint64_t handle = kLimitHandles | static_cast<std::uint64_t>(limit);
  const wire::DeviceSetLimit command{static_cast<std::uint32_t>(limit), value};
  return Core().IsLive(handle) ? Core().Configure(handle, Encode(command))
                               : Core().Create(handle, Encode(command));
}

cudaError_t GetLimit(std::size_t* value, cudaLimit limit) {
  if (!value) return cudaErrorInvalidValue;
  if (limit < 0 || limit > cudaLimitPersistingL2CacheSize) return cudaErrorUnsupportedLimit;
  TORPOR_TRY(Begin());
  wire::DeviceGetLimitResult result;
  TORPOR_TRY(Ask(wire::DeviceGetLimit{static_cast<std::uint32_t>(limit)}, result));
  *value = result.value;
  return cudaSuccess;
}

cudaError_t CheckDevicePair(int a, int b) {
  TORPOR_TRY(Begin());
  return IsDevice(a) && IsDevice(b) ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t EnablePeerAccess(int peer, unsigned flags) {
  if (flags != 0) return cudaErrorInvalidValue;
  TORPOR_TRY(CheckDevicePair(peer, peer));
  if (peer == DeviceInUse()) return cudaErrorInvalidDevice;
  if (!Core().session().has_peer_access) return cudaErrorPeerAccessUnsupported;
  TORPOR_TRY(Core().OfDevice(peer)->Start());
  return ThePeers().Enable(DeviceInUse(), peer) ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
}

}  // namespace

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

cudaError_t cudaInitDevice(int device, unsigned int, unsigned int) {
  return Entry([&]() -> cudaError_t {
    TORPOR_TRY(Begin());
    return IsDevice(device) ? Core().OfDevice(device)->Start() : cudaErrorInvalidDevice;
  });
}

// All are alike: whatever list a program prefers, the first that it names will do.
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

cudaError_t cudaDeviceSynchronize() {
  return Entry([] { return SynchronizeDevice(); });
}

cudaError_t cudaDeviceReset() {
  return Entry([] { return ResetDevice(); });
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
  return Entry([&] { return SetLimit(limit, value); });
}

cudaError_t cudaDeviceGetLimit(size_t* value, enum cudaLimit limit) {
  return Entry([&] { return GetLimit(value, limit); });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  // Every GPU since Pascal answers this.
  constexpr int kGreatest = -5;
  return Entry([&]() -> cudaError_t {
    TORPOR_TRY(Begin());
    if (least) *least = 0;
    if (greatest) *greatest = kGreatest;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer) {
  return Entry([&]() -> cudaError_t {
    if (!can_access) return cudaErrorInvalidValue;
    TORPOR_TRY(CheckDevicePair(device, peer));
    *can_access = device != peer && Core().session().has_peer_access ? 1 : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, enum cudaDeviceP2PAttr attribute, int device,
                                      int peer) {
  return Entry([&]() -> cudaError_t {
    if (!value) return cudaErrorInvalidValue;
    TORPOR_TRY(CheckDevicePair(device, peer));
    if (device == peer) return cudaErrorInvalidDevice;
    const bool is_reachable = Core().session().has_peer_access;
    *value = attribute == cudaDevP2PAttrAccessSupported && is_reachable ? 1 : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  return Entry([&] { return EnablePeerAccess(peer, flags); });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return Entry([&]() -> cudaError_t {
    TORPOR_TRY(CheckDevicePair(peer, peer));
    return ThePeers().Disable(DeviceInUse(), peer) ? cudaSuccess : cudaErrorPeerAccessNotEnabled;
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
