#pragma once

#include <cstdint>
#include <map>

#include "client_shim/core/client_core.h"
#include "client_shim/core/shared_regions.h"

namespace torpor::shim {

// The memory of other processes that this one has open: how often each allocation, and their
// owners' addresses, at which nothing else may be meanwhile. Not thread-safe.
class ForeignMemory {
 public:
  using Handle = ClientCore::MemoryHandle;

  struct Opened {
    Handle handle;
    std::uint64_t uses = 0;
  };
  // Null if nothing is open at `address`.
  Opened* Find(std::uint64_t address);

  // Opens it once; ENOMEM or the like if the owner's addresses are taken in this process.
  int Add(const Handle& handle, std::uint64_t range_base, std::uint64_t range_bytes);
  // The addresses are free again with the last allocation of their owner.
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
