#pragma once

#include <cstdint>

namespace torpor::shim {

// What memory a pointer of the program names.
enum class Side { kPageable, kArena, kDevice };

struct Place {
  Side side = Side::kPageable;
  std::uint64_t room = ~std::uint64_t{0};  // bytes from the pointer to its allocation's end
  bool is_wild = false;                    // a device address that no allocation contains
  int device = 0;                          // for which it was allocated
};

Place PlaceOf(const void* pointer);

// Offset of a pinned address in the host arena.
std::uint64_t ArenaOffset(const void* pointer);

}  // namespace torpor::shim
