#include "client_shim/core/memory/allocation_map.h"

#include <iterator>
#include <mutex>

namespace torpor::shim {

void AllocationMap::Insert(const ClientCore::Allocation& allocation) {
  std::unique_lock lock(mutex_);
  by_begin_[allocation.begin] = allocation;
}

bool AllocationMap::Erase(std::uint64_t begin) {
  std::unique_lock lock(mutex_);
  return by_begin_.erase(begin) > 0;
}

bool AllocationMap::Find(std::uint64_t address, ClientCore::Allocation& allocation) const {
  std::shared_lock lock(mutex_);
  auto after = by_begin_.upper_bound(address);
  if (after == by_begin_.begin()) return false;
  const ClientCore::Allocation& found = std::prev(after)->second;
  if (address - found.begin >= found.bytes) return false;
  allocation = found;
  return true;
}

std::vector<ClientCore::Allocation> AllocationMap::All() const {
  std::shared_lock lock(mutex_);
  std::vector<ClientCore::Allocation> all;
  for (const auto& [begin, allocation] : by_begin_) all.push_back(allocation);
  return all;
}

}  // namespace torpor::shim
