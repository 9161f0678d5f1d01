#include "client_shim/cudart/device/peer_access.h"

#include <mutex>
#include <set>
#include <utility>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/device/devices.h"

namespace torpor::shim {
namespace {

// The pairs enabled by the program, for CUDA's errors only: devices reach each other's memory from
// the start. Thread-safe.
class Peers {
 public:
  // Returns false if the pair was enabled before.
  bool Enable(int device, int peer) {
    std::lock_guard lock(mutex_);
    return enabled_.insert({device, peer}).second;
  }
  // Returns false if the pair was not enabled.
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

// Opens the session and checks both indices.
cudaError_t CheckDevicePair(int a, int b) {
  TORPOR_TRY(Begin());
  return IsDevice(a) && IsDevice(b) ? cudaSuccess : cudaErrorInvalidDevice;
}

// Opens the peer's session too. CUDA's errors for bad and repeated calls.
cudaError_t EnablePeerAccess(int peer, unsigned flags) {
  if (flags != 0) return cudaErrorInvalidValue;
  TORPOR_TRY(CheckDevicePair(peer, peer));
  if (peer == DeviceInUse()) return cudaErrorInvalidDevice;
  if (!Core().session().has_peer_access) return cudaErrorPeerAccessUnsupported;
  TORPOR_TRY(Core().OfDevice(peer)->Start());
  return ThePeers().Enable(DeviceInUse(), peer) ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
}

}  // namespace

void DisablePeerAccess(int device) { ThePeers().DisableAll(device); }

}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer) {
  return Entry([&]() -> cudaError_t {
    if (!can_access) return cudaErrorInvalidValue;
    TORPOR_TRY(CheckDevicePair(device, peer));
    *can_access = device != peer && Core().session().has_peer_access ? 1 : 0;
    return cudaSuccess;
  });
}

// Only plain access is offered: no native atomics, no CUDA arrays of peers.
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
