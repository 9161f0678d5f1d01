#include "client_shim/core/memory/foreign_memory.h"

#include <utility>

namespace torpor::shim {

ForeignMemory::Opened* ForeignMemory::Find(std::uint64_t address) {
  const auto found = by_address_.find(address);
  return found == by_address_.end() ? nullptr : &found->second;
}

int ForeignMemory::Add(const Handle& handle, std::uint64_t range_base, std::uint64_t range_bytes) {
  Range& range = by_owner_[handle.owner_session];
  if (range.allocations == 0) {
    Result<AddressReservation, int> addresses = AddressReservation::Make(range_base, range_bytes);
    if (!addresses) {
      by_owner_.erase(handle.owner_session);
      return addresses.failure().code;
    }
    range.addresses = std::move(addresses).value();
  }
  ++range.allocations;
  by_address_[handle.address] = {handle, 1};
  return 0;
}

void ForeignMemory::Remove(std::uint64_t address) {
  const auto opened = by_address_.find(address);
  if (opened == by_address_.end()) return;
  const auto range = by_owner_.find(opened->second.handle.owner_session);
  if (--range->second.allocations == 0) by_owner_.erase(range);
  by_address_.erase(opened);
}

}  // namespace torpor::shim
