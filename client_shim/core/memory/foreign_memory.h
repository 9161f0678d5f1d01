#pragma once

#include <cstdint>
#include <map>

#include "client_shim/core/client_core.h"

namespace torpor::shim {

// The opened memory of other processes: a count of uses for each allocation. The addresses are
// among those that this process keeps free for all sessions. Not thread-safe.
class ForeignMemory {
 public:
  using Handle = ClientCore::MemoryHandle;

  struct Opened {
    Handle handle;
    std::uint64_t uses = 0;
  };
  // Returns null if no memory is open at `address`.
  Opened* Find(std::uint64_t address);

  // Adds an allocation with one use; requires that none is open at the same address.
  void Add(const Handle& handle) { by_address_[handle.address] = {handle, 1}; }
  void Remove(std::uint64_t address) { by_address_.erase(address); }

 private:
  std::map<std::uint64_t, Opened> by_address_;
};

}  // namespace torpor::shim
