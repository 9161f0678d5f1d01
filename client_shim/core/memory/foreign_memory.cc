#include "client_shim/core/memory/foreign_memory.h"

namespace torpor::shim {

ForeignMemory::Opened* ForeignMemory::Find(std::uint64_t address) {
  const auto found = by_address_.find(address);
  return found == by_address_.end() ? nullptr : &found->second;
}

}  // namespace torpor::shim
