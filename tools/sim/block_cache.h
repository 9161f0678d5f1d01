#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace torpor::sim {

// A GPU's memory with released blocks cached in a single pool (Torpor-Block, section 7.3 of the
// paper). An image takes over the blocks of an evicted image of the same model. Without such blocks
// the driver allocates new ones, after freeing cached blocks, of the largest images first, until
// there is room.
// Counts only: no memory is touched. Not thread-safe.
class BlockCache {
 public:
  struct Kind {
    Bytes bytes = 0;  // of an image
    std::uint32_t blocks = 0;
  };

  BlockCache(Bytes capacity, std::vector<Kind> kinds);

  // An image of `model` comes. Returns the number of driver calls.
  std::uint32_t Take(std::size_t kind);
  // An image of `model` is evicted; the blocks stay cached.
  void Release(std::size_t kind);

 private:
  std::uint32_t FreeOne();

  const Bytes capacity_;
  const std::vector<Kind> kinds_;
  std::vector<std::size_t> by_size_;   // kinds, the largest first
  std::vector<std::uint32_t> cached_;  // images of each kind
  Bytes allocated_ = 0;                // taken or cached
};

}  // namespace torpor::sim
