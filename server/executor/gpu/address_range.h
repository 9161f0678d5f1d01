#pragma once

#include <cstdint>

#include "base/units.h"

namespace torpor::executor {

// Addresses of the GPU or of this process: `bytes` from `begin` on.
struct AddressRange {
  std::uint64_t begin = 0;
  Bytes bytes = 0;

  // Whether [address, address + size) lies inside. Takes any numbers.
  constexpr bool Holds(std::uint64_t address, Bytes size) const {
    const Bytes before = address - begin;
    return address >= begin && before <= bytes && size <= bytes - before;
  }
};

}  // namespace torpor::executor
