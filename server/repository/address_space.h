#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"
#include "memory/range_allocator.h"

namespace torpor::server {

// The addresses that sessions get: unique on the node, so that an executor can keep all of them
// reserved. A range is given again only after Release, that is when no executor uses it.
class AddressSpace {
 public:
  // From `base` to where programs, heaps and libraries begin on x86-64 Linux; empty if there is
  // nothing between.
  explicit AddressSpace(std::uint64_t base);

  // An address at a multiple of 1 GiB. Nothing when the space is used up.
  std::optional<std::uint64_t> Reserve(Bytes bytes);
  void Release(std::uint64_t address, Bytes bytes);

 private:
  const std::uint64_t base_;
  memory::FreeBlocks free_;
};

}  // namespace torpor::server
