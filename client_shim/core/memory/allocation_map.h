#pragma once

#include <cstdint>
#include <map>
#include <shared_mutex>
#include <vector>

#include "client_shim/core/client_core.h"

namespace torpor::shim {

// The live allocations of a process by address. Thread-safe.
class AllocationMap {
 public:
  void Insert(const ClientCore::Allocation& allocation);
  // Removes the allocation at `begin`; false if no allocation begins there.
  bool Erase(std::uint64_t begin);
  // Finds the allocation around `address`; false if there is none.
  bool Find(std::uint64_t address, ClientCore::Allocation& allocation) const;
  std::vector<ClientCore::Allocation> All() const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, ClientCore::Allocation> by_begin_;
};

}  // namespace torpor::shim
