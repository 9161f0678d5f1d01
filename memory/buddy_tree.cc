#include "memory/buddy_tree.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace torpor::memory {
namespace {

std::uint8_t WholeOrder(std::uint32_t units) {
  return static_cast<std::uint8_t>(std::bit_width(units));
}

}  // namespace

BuddyTree::BuddyTree(std::uint32_t units) : units_(units), nodes_(std::size_t{2} * units) {
  TORPOR_CHECK(std::has_single_bit(units));
  for (std::uint32_t node = 1; node < nodes_.size(); ++node) {
    nodes_[node] = WholeOrder(units_ >> (std::bit_width(node) - 1));
  }
}

std::uint8_t BuddyTree::OrderFor(std::uint32_t units, std::uint32_t alignment) {
  return WholeOrder(std::bit_ceil(std::max(units, alignment)));
}

std::optional<std::uint32_t> BuddyTree::Take(std::uint32_t units, std::uint32_t alignment) {
  if (units > units_ || alignment > units_) return std::nullopt;
  const std::uint8_t order = OrderFor(units, alignment);
  if (nodes_[1] < order) return std::nullopt;
  Buddy buddy = Root();
  while (WholeOrder(buddy.units) > order) {
    const std::uint8_t left = nodes_[buddy.Left().node];
    const std::uint8_t right = nodes_[buddy.Right().node];
    // Choose the tighter half, so that large buddies stay whole.
    const bool go_right = left < order || (right >= order && right < left);
    buddy = go_right ? buddy.Right() : buddy.Left();
  }
  Mark(Root(), buddy.begin, buddy.begin + units, false);
  return buddy.begin;
}

bool BuddyTree::TakeAt(std::uint32_t begin, std::uint32_t units) {
  if (begin > units_ || units > units_ - begin || !IsFree(Root(), begin, begin + units)) {
    return false;
  }
  Mark(Root(), begin, begin + units, false);
  return true;
}

void BuddyTree::Release(std::uint32_t begin, std::uint32_t units) {
  Mark(Root(), begin, begin + units, true);
}

bool BuddyTree::IsFree(Buddy buddy, std::uint32_t begin, std::uint32_t end) const {
  if (end <= buddy.begin || buddy.end() <= begin) return true;
  if (nodes_[buddy.node] == WholeOrder(buddy.units)) return true;
  if (nodes_[buddy.node] == 0 || (begin <= buddy.begin && buddy.end() <= end)) return false;
  return IsFree(buddy.Left(), begin, end) && IsFree(buddy.Right(), begin, end);
}

void BuddyTree::Mark(Buddy buddy, std::uint32_t begin, std::uint32_t end, bool is_free) {
  if (end <= buddy.begin || buddy.end() <= begin) return;
  const std::uint8_t whole = WholeOrder(buddy.units);
  if (begin <= buddy.begin && buddy.end() <= end) {
    nodes_[buddy.node] = is_free ? whole : std::uint8_t{0};
    return;
  }
  Mark(buddy.Left(), begin, end, is_free);
  Mark(buddy.Right(), begin, end, is_free);
  const std::uint8_t left = nodes_[buddy.Left().node];
  const std::uint8_t right = nodes_[buddy.Right().node];
  const bool is_whole = left == whole - 1 && right == whole - 1;
  nodes_[buddy.node] = is_whole ? whole : std::max(left, right);
}

}  // namespace torpor::memory
