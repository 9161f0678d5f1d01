#pragma once

namespace torpor::server {

// Where an image came from for a lease: resident already, or copied from the host or a peer GPU.
enum class SwapSource { kResident, kHost, kPeer };

// "resident", "host" or "peer".
constexpr const char* NameOf(SwapSource source) {
  constexpr const char* kNames[] = {"resident", "host", "peer"};
  return kNames[static_cast<int>(source)];
}

}  // namespace torpor::server
