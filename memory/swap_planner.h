#pragma once

#include <span>
#include <vector>

#include "base/units.h"
#include "memory/extent_set.h"

namespace torpor::memory {

// What a swap-in copies before it tells that it has arrived: pieces in the order in which they are
// copied.
using SwapGroup = std::vector<Extent>;

// The allocations (ascending) in the order in which a swap-in should bring them. First come those
// that begin at an offset of `touched`, in that order; what `touched` has besides is left out. Of
// the others those of which `uploaded` has a byte come before those of which it has none.
std::vector<Extent> OrderForSwapIn(std::span<const Extent> allocations,
                                   std::span<const Bytes> touched, const ExtentSet& uploaded);

// Groups in the order of `extents`, whose copies are of `group_bytes` (> 0) on average: a group in
// one piece has at least as many bytes, one in two pieces twice as many, and so on up to four times
// as many. An extent that is no larger than `group_bytes` is never cut, so that a group may become
// larger by almost that; a larger one is, at multiples of `group_bytes`: host memory is pinned in
// pieces that end there, and a copy cannot span two. Within a group pieces ascend, and neighbours
// are one. Extents do not overlap.
std::vector<SwapGroup> GroupBySize(std::span<const Extent> extents, Bytes group_bytes);

// A group an extent.
std::vector<SwapGroup> GroupEach(std::span<const Extent> extents);

}  // namespace torpor::memory
