#include "client_shim/cudart/module/symbol_addresses.h"

#include <iterator>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "client_shim/cudart/call/per_device.h"

namespace torpor::shim {
namespace {

// The addresses of variables on a device. Thread-safe.
class SymbolAddresses {
 public:
  bool Add(const ClientVariable* variable, std::uint64_t address, std::uint64_t bytes) {
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
  void Remove(const ClientVariable* variable) {
    std::unique_lock lock(mutex_);
    const auto found = addresses_.find(variable);
    if (found == addresses_.end()) return;
    bytes_.erase(found->second);
    addresses_.erase(found);
  }
  SymbolSpan Get(const ClientVariable* variable) {
    std::shared_lock lock(mutex_);
    const auto found = addresses_.find(variable);
    return found == addresses_.end() ? SymbolSpan{}
                                     : SymbolSpan{found->second, bytes_.at(found->second)};
  }
  // Bytes from `address` to the end of the variable; 0 outside all variables.
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
  std::unordered_map<const ClientVariable*, std::uint64_t> addresses_;
};

// Per device, since drivers give variables of different GPUs equal addresses.
SymbolAddresses& TheSymbolAddresses() {
  static auto* const addresses = new PerDevice<SymbolAddresses>();
  return addresses->here();
}

}  // namespace

bool RememberSymbolAddress(const ClientVariable* variable, std::uint64_t address,
                           std::uint64_t bytes) {
  return TheSymbolAddresses().Add(variable, address, bytes);
}

SymbolSpan SymbolSpanOf(const ClientVariable* variable) {
  return TheSymbolAddresses().Get(variable);
}

void ForgetSymbolAddress(const ClientVariable* variable) { TheSymbolAddresses().Remove(variable); }

void ForgetSymbolAddresses() { TheSymbolAddresses().Clear(); }

std::uint64_t RoomInSymbol(std::uint64_t address) { return TheSymbolAddresses().Room(address); }

}  // namespace torpor::shim
