#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace torpor::sim {

// A GPU's memory where the blocks of evicted images are cached in one pool as they are
// (Torpor-Block, section 7.3 of the paper): an image takes the blocks of an evicted one of its
// model; where there is none it gets new blocks from the driver, for which cached ones, those of
// the largest images first, are given back until there is room.
class BlockCache {
 public:
  struct Kind {
    Bytes bytes = 0;  // of an image of this model
    std::uint32_t blocks = 0;
  };

  BlockCache(Bytes capacity, std::vector<Kind> kinds);

  // An image of that model comes; how often the driver is called for it.
  std::uint32_t Take(std::size_t kind);
  // It is evicted.
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
