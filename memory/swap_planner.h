#pragma once

#include <span>
#include <vector>

#include "base/units.h"
#include "memory/extent_set.h"

namespace torpor::memory {

// Pieces that a swap-in copies together before it reports their arrival, in the order of copying.
using SwapGroup = std::vector<Extent>;

// Returns the allocations (ascending) in the order in which a swap-in should bring them: first the
// allocations at the offsets `touched`, in that order (other offsets are ignored), then allocations
// with a byte in `uploaded`, then the rest.
std::vector<Extent> OrderForSwapIn(std::span<const Extent> allocations,
                                   std::span<const Bytes> touched, const ExtentSet& uploaded);

// Groups `extents`, which do not overlap, in their order, such that copies have `group_bytes` (> 0)
// on average: a group of one piece has at least `group_bytes`, a group of two pieces twice as many,
// and so on up to four times as many. Extents up to `group_bytes` are never cut, so that a group
// may be larger by almost `group_bytes`. Larger extents are cut at multiples of `group_bytes`,
// where pieces of pinned host memory end, as a copy cannot span two. Within a group pieces ascend,
// and neighbours are joined.
std::vector<SwapGroup> GroupBySize(std::span<const Extent> extents, Bytes group_bytes);

// Makes one group per extent.
std::vector<SwapGroup> GroupEach(std::span<const Extent> extents);

}  // namespace torpor::memory
