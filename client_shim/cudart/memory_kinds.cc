#include "client_shim/cudart/memory_kinds.h"

#include <iterator>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "client_shim/cudart/entry.h"
#include "client_shim/cudart/memory_pools.h"
#include "client_shim/cudart/per_device.h"

namespace torpor::shim {
namespace {

class SymbolAddresses {
 public:
  bool Add(const Variable* variable, std::uint64_t address, std::uint64_t bytes) {
    std::unique_lock lock(mutex_);
    if (const auto known = addresses_.find(variable); known != addresses_.end())
      return known->second == address;  // another thread was faster
    const auto next = bytes_.lower_bound(address);
    if (next != bytes_.end() && next->first < address + bytes) return false;
    if (next != bytes_.begin() && address - std::prev(next)->first < std::prev(next)->second)
      return false;
    bytes_[address] = bytes;
    addresses_[variable] = address;
    return true;
  }
  void Clear() {
    std::unique_lock lock(mutex_);
    bytes_.clear();
    addresses_.clear();
  }
  void Remove(const Variable* variable) {
    std::unique_lock lock(mutex_);
    const auto found = addresses_.find(variable);
    if (found == addresses_.end()) return;
    bytes_.erase(found->second);
    addresses_.erase(found);
  }
  SymbolSpan Get(const Variable* variable) {
    std::shared_lock lock(mutex_);
    const auto found = addresses_.find(variable);
    return found == addresses_.end() ? SymbolSpan{}
                                     : SymbolSpan{found->second, bytes_.at(found->second)};
  }
  // Bytes from `address` to the variable's end; 0 if it is in none.
  std::uint64_t Room(std::uint64_t address) {
    std::shared_lock lock(mutex_);
    const auto after = bytes_.upper_bound(address);
    if (after == bytes_.begin()) return 0;
    const auto& [begin, bytes] = *std::prev(after);
    return address - begin < bytes ? begin + bytes - address : 0;
  }

 private:
  std::shared_mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> bytes_;
  std::unordered_map<const Variable*, std::uint64_t> addresses_;
};

// Of the device in use: drivers give variables of different GPUs the same address.
SymbolAddresses& TheSymbolAddresses() {
  static auto* const addresses = new PerDevice<SymbolAddresses>();
  return addresses->here();
}

// A device address that no allocation contains.
bool IsWild(std::uint64_t address, int& device) {
  for (device = 0; ClientCore* const core = Core().OfDevice(device); ++device) {
    if (!core->IsOpen()) continue;
    if (address - core->session().device_base < core->session().device_bytes) return true;
  }
  return false;
}

}  // namespace

Place PlaceOf(const void* pointer) {
  const std::uint64_t address = Address(pointer);
  ClientCore::Allocation allocation;
  if (Core().FindAllocation(address, allocation)) {
    std::uint64_t room = 0;
    if (FindInPools(allocation, address, room))
      return {Side::kDevice, room, room == 0, allocation.device};
    const Side side = allocation.on_device ? Side::kDevice : Side::kArena;
    return {side, allocation.begin + allocation.bytes - address, false, allocation.device};
  }
  const wire::HelloReply& session = Core().session();
  if (int device = 0; IsWild(address, device)) return {Side::kDevice, 0, true, device};
  if (address - session.host_base < session.host_bytes) return {Side::kArena, 0, true, 0};
  if (const std::uint64_t room = TheSymbolAddresses().Room(address); room > 0)
    return {Side::kDevice, room, false, DeviceInUse()};
  return {};
}

bool RememberSymbolAddress(const Variable* variable, std::uint64_t address, std::uint64_t bytes) {
  return TheSymbolAddresses().Add(variable, address, bytes);
}

SymbolSpan SymbolSpanOf(const Variable* variable) { return TheSymbolAddresses().Get(variable); }

void ForgetSymbolAddress(const Variable* variable) { TheSymbolAddresses().Remove(variable); }

void ForgetSymbolAddresses() { TheSymbolAddresses().Clear(); }

std::uint64_t ArenaOffset(const void* pointer) {
  return Address(pointer) - Core().session().host_base;
}

}  // namespace torpor::shim
