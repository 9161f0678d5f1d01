#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"
#include "memory/range_allocator.h"

namespace torpor::server {

// Hands out ranges of GPU addresses to sessions. Ranges are unique on the node, so that an executor
// can reserve the ranges of all its sessions at once. Release a range only after the last executor
// has let go of it. Not thread-safe.
class SessionAddresses {
 public:
  // Covers the addresses from `base` to where programs, heaps and libraries begin on x86-64 Linux.
  // Empty if `base` lies above that end.
  explicit SessionAddresses(std::uint64_t base);

  // Reserves `bytes`, rounded up to 1 GiB, at a multiple of 1 GiB and returns the first address.
  // Returns nullopt when the space is used up.
  std::optional<std::uint64_t> Reserve(Bytes bytes);
  // Gives back a range of Reserve, with the same `bytes`.
  void Release(std::uint64_t address, Bytes bytes);

 private:
  const std::uint64_t base_;
  memory::FreeBlocks free_;
};

}  // namespace torpor::server
