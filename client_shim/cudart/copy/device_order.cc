#include "client_shim/cudart/copy/device_order.h"

namespace torpor::shim {
namespace {

// A single device makes a copy between devices and must reach the other device's memory.
cudaError_t CheckPeers() {
  if (Core().session().has_peer_access) return cudaSuccess;
  Core().WarnOnce("peer copy",
                  "copies between GPUs are not supported: this node's GPUs lack peer access");
  return cudaErrorNotSupported;
}

// Waits for all work of a device, without changing the device in use.
cudaError_t AwaitDevice(int device) {
  const CoreScope scope;
  UseDevice(device);
  return Core().IsDrained() ? cudaSuccess : Ask(wire::DeviceSynchronize{});
}

}  // namespace

bool IsBetweenDevices(const CopyRoute& route) {
  return route.from == Side::kDevice && route.to == Side::kDevice &&
         route.from_device != route.to_device;
}

cudaError_t OrderBehindDevices(const CopyRoute& route, const ClientStream& stream, Wait wait) {
  const bool is_between = IsBetweenDevices(route);
  if (is_between) TORPOR_TRY(CheckPeers());
  if (wait == Wait::kNo || !IsLegacy(stream)) return cudaSuccess;
  if (is_between) {
    TORPOR_TRY(AwaitDevice(route.from_device));
    return AwaitDevice(route.to_device);
  }
  if (route.to == Side::kDevice) UseDevice(route.to_device);
  if (route.from == Side::kDevice) UseDevice(route.from_device);
  return cudaSuccess;
}

}  // namespace torpor::shim
