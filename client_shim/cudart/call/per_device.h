#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "client_shim/cudart/call/entry.h"

namespace torpor::shim {

// A value for each of the program's devices. As thread-safe as Value.
template <typename Value>
class PerDevice {
 public:
  // The value of the device in use.
  Value& here() { return of(DeviceInUse()); }
  const Value& here() const { return values_[static_cast<std::size_t>(DeviceInUse())]; }
  Value& of(int device) { return values_[static_cast<std::size_t>(device)]; }

 private:
  std::array<Value, wire::kMaxDevices> values_{};
};

// A set of the program's devices. Thread-safe: a thread that finds the device in use in the set
// sees all writes made before the device was added.
class DeviceSet {
 public:
  bool HasCurrent() const { return (bits_.load(std::memory_order_acquire) & Current()) != 0; }
  void AddCurrent() { bits_.fetch_or(Current(), std::memory_order_release); }
  // Returns whether the set had the device.
  bool RemoveCurrent() { return (bits_.fetch_and(~Current()) & Current()) != 0; }

 private:
  static std::uint32_t Current() { return std::uint32_t{1} << DeviceInUse(); }

  std::atomic<std::uint32_t> bits_{0};
};
static_assert(wire::kMaxDevices <= 32);

}  // namespace torpor::shim
