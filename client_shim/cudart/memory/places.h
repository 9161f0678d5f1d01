#pragma once

#include <cstdint>

namespace torpor::shim {

// The kinds of memory behind a pointer of the program: pageable, the host arena, or a device.
enum class Side { kPageable, kArena, kDevice };

// The memory at a pointer.
struct Place {
  Side side = Side::kPageable;
  std::uint64_t room = ~std::uint64_t{0};  // bytes from the pointer to its allocation's end
  bool is_wild = false;  // in a session's range of addresses, but outside all allocations
  int device = 0;        // the device of the allocation
};

// Classifies a pointer without asking the executor. Call with the session open. Thread-safe.
Place PlaceOf(const void* pointer);

// Offset of a pinned address in the host arena.
std::uint64_t ArenaOffset(const void* pointer);

}  // namespace torpor::shim
