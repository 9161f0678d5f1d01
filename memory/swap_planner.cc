#include "memory/swap_planner.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace torpor::memory {
namespace {

// Maximum size of a group as a multiple of group_bytes, however many pieces there are.
constexpr std::size_t kMaxPieces = 4;

// Returns the end of the first piece of `rest` for one group.
Bytes CutOf(Extent rest, Bytes group_bytes) {
  if (rest.bytes() <= group_bytes) return rest.end;
  return std::min(rest.end, RoundDown(rest.begin, group_bytes) + group_bytes);
}

// Returns how many groups are smaller than `group_bytes`.
std::size_t SmallGroups(Bytes group_bytes) {
  std::size_t groups = 0;
  while (kFirstGroup << groups < group_bytes) ++groups;
  return groups;
}

// Returns the size of the group behind so many others.
Bytes SizeBehind(std::size_t groups, Bytes group_bytes) {
  const std::size_t small = SmallGroups(group_bytes);
  if (groups < small) return kFirstGroup << groups;
  const std::size_t doublings = (groups - small) / kGroupsOfASize;
  constexpr std::size_t kMaxDoublings = std::bit_width(kMaxGrowth) - 1;
  return group_bytes << std::min(doublings, kMaxDoublings);
}

}  // namespace

std::vector<Extent> OrderForSwapIn(std::span<const Extent> allocations,
                                   std::span<const Bytes> touched, const ExtentSet& uploaded) {
  std::vector<Extent> order;
  order.reserve(allocations.size());
  std::vector<bool> is_placed(allocations.size());
  for (const Bytes offset : touched) {
    const auto found = std::ranges::lower_bound(allocations, offset, {}, &Extent::begin);
    const auto index = static_cast<std::size_t>(found - allocations.begin());
    if (found == allocations.end() || found->begin != offset || is_placed[index]) continue;
    is_placed[index] = true;
    order.push_back(*found);
  }
  for (const bool wants_uploaded : {true, false}) {
    for (std::size_t i = 0; i < allocations.size(); ++i) {
      const bool is_uploaded = !uploaded.Within(allocations[i]).empty();
      if (!is_placed[i] && is_uploaded == wants_uploaded) order.push_back(allocations[i]);
    }
  }
  return order;
}

std::vector<SwapGroup> GroupBySize(std::span<const Extent> extents, Bytes group_bytes) {
  std::vector<SwapGroup> groups;
  ExtentSet open;
  Bytes open_bytes = 0;
  for (Extent rest : extents) {
    while (rest.bytes() > 0) {
      const Bytes size = SizeBehind(groups.size(), group_bytes);
      const Extent piece{rest.begin, CutOf(rest, size)};
      open.Add(piece);
      open_bytes += piece.bytes();
      rest.begin = piece.end;
      const bool is_small = size < group_bytes;
      if (open_bytes < size * (is_small ? 1 : std::min(open.count(), kMaxPieces))) continue;
      groups.push_back(std::exchange(open, {}).extents());
      open_bytes = 0;
    }
  }
  if (!open.empty()) groups.push_back(open.extents());
  return groups;
}

std::vector<SwapGroup> GroupAll(std::span<const Extent> extents) {
  ExtentSet all;
  for (const Extent& extent : extents) all.Add(extent);
  if (all.empty()) return {};
  return {all.extents()};
}

std::vector<SwapGroup> GroupEach(std::span<const Extent> extents) {
  std::vector<SwapGroup> groups;
  groups.reserve(extents.size());
  for (const Extent& extent : extents) {
    if (extent.bytes() > 0) groups.push_back({extent});
  }
  return groups;
}

}  // namespace torpor::memory
