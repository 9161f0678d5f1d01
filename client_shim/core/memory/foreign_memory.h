#pragma once

#include <cstdint>
#include <map>

#include "client_shim/core/client_core.h"
#include "client_shim/core/memory/shared_regions.h"

namespace torpor::shim {

// The opened memory of other processes: a count of uses for each allocation, and a reservation of
// its owner's addresses, which keeps all other memory of this process away. Not thread-safe.
class ForeignMemory {
 public:
  using Handle = ClientCore::MemoryHandle;

  struct Opened {
    Handle handle;
    std::uint64_t uses = 0;
  };
  // Returns null if no memory is open at `address`.
  Opened* Find(std::uint64_t address);

  // Adds an allocation with one use; requires that none is open at the same address. Returns 0, or
  // an errno such as EEXIST if the owner's addresses are taken in this process.
  int Add(const Handle& handle, std::uint64_t range_base, std::uint64_t range_bytes);
  // Removes an allocation; the owner's last one ends the reservation of the owner's addresses.
  void Remove(std::uint64_t address);

 private:
  struct Range {
    AddressReservation addresses;
    std::uint64_t allocations = 0;
  };

  std::map<std::uint64_t, Opened> by_address_;
  std::map<std::uint64_t, Range> by_owner_;  // by session
};

}  // namespace torpor::shim
