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

// The first group of a swap-in is no larger, and each is twice as large as the one before until
// groups have their size: the first kernel waits for the first group, and at most a few copies are
// smaller than the link would like.
inline constexpr Bytes kFirstGroup = 2 * kMiB;

// The groups of one size; the next groups are twice as large, up to kMaxGrowth times the first.
// Work that waits for a late group has waited longer already, so a larger group delays work by a
// smaller part, and fewer copies cost the link less.
inline constexpr std::size_t kGroupsOfASize = 4;
inline constexpr Bytes kMaxGrowth = 4;

// Groups `extents`, which do not overlap, in their order, such that copies have `group_bytes` (> 0)
// on average, and more in later groups (kGroupsOfASize): a group of one piece has at least so many
// bytes, a group of two pieces twice as many, and so on up to four times as many. Before these come
// smaller groups of any number of pieces (kFirstGroup). Extents up to the
// group's size are never cut, so that a group may be larger by almost that size. Larger extents are
// cut at multiples of the size, where pieces of pinned host memory end, as a copy cannot span two.
// Within a group pieces ascend, and neighbours are joined.
std::vector<SwapGroup> GroupBySize(std::span<const Extent> extents, Bytes group_bytes);

// Makes one group of all extents, or none of none.
std::vector<SwapGroup> GroupAll(std::span<const Extent> extents);

// Makes one group per extent.
std::vector<SwapGroup> GroupEach(std::span<const Extent> extents);

}  // namespace torpor::memory
