#pragma once

#include <cstdint>
#include <map>
#include <shared_mutex>
#include <vector>

#include "client_shim/core/client_core.h"

namespace torpor::shim {

// The session's live allocations by address. Thread-safe.
class AllocationMap {
 public:
  void Insert(const ClientCore::Allocation& allocation);
  // False: no allocation begins there.
  bool Erase(std::uint64_t begin);
  // The allocation that contains `address`.
  bool Find(std::uint64_t address, ClientCore::Allocation& allocation) const;
  std::vector<ClientCore::Allocation> All() const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, ClientCore::Allocation> by_begin_;
};

}  // namespace torpor::shim
