#include "tools/sim/block_cache.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace torpor::sim {

BlockCache::BlockCache(Bytes capacity, std::vector<Kind> kinds)
    : capacity_(capacity),
      kinds_(std::move(kinds)),
      by_size_(kinds_.size()),
      cached_(kinds_.size(), 0) {
  std::iota(by_size_.begin(), by_size_.end(), 0);
  std::stable_sort(by_size_.begin(), by_size_.end(), [this](std::size_t a, std::size_t b) {
    return kinds_[a].bytes > kinds_[b].bytes;
  });
}

// A hit costs nothing. A miss allocates every block anew, after freeing images of the largest kinds
// until the bytes fit; every block freed or allocated is a driver call.
std::uint32_t BlockCache::Take(std::size_t kind) {
  if (cached_[kind] > 0) {
    --cached_[kind];
    return 0;
  }
  std::uint32_t calls = kinds_[kind].blocks;
  while (allocated_ + kinds_[kind].bytes > capacity_) {
    const std::uint32_t freed = FreeOne();
    if (freed == 0) break;
    calls += freed;
  }
  allocated_ += kinds_[kind].bytes;
  return calls;
}

void BlockCache::Release(std::size_t kind) { ++cached_[kind]; }

std::uint32_t BlockCache::FreeOne() {
  for (const std::size_t kind : by_size_) {
    if (cached_[kind] == 0) continue;
    --cached_[kind];
    allocated_ -= kinds_[kind].bytes;
    return kinds_[kind].blocks;
  }
  return 0;
}

}  // namespace torpor::sim
