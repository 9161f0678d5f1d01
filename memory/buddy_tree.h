#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace torpor::memory {

// A buddy system over the units [0, n), n a power of two, as a binary tree: a node is a buddy, the
// children are the two halves, and each node stores the order of the largest free buddy inside.
// Splitting and coalescing read and write one path, O(log n).
//
// The size of a block need not be a power of two: the block begins where a buddy large enough
// begins, and the buddies behind the block's end stay free. Not thread-safe.
class BuddyTree {
 public:
  explicit BuddyTree(std::uint32_t units);

  // Takes `units` (> 0) units at a multiple of `alignment` (a power of two) out of the smallest
  // free buddy that has room. Returns the first unit, or nullopt if there is no such buddy.
  std::optional<std::uint32_t> Take(std::uint32_t units, std::uint32_t alignment);
  // Takes exactly [begin, begin + units). Returns false if any of the units is taken.
  bool TakeAt(std::uint32_t begin, std::uint32_t units);
  // Frees a block that Take or TakeAt took, with the same `units`.
  void Release(std::uint32_t begin, std::uint32_t units);

  // 1 + log2 of the units of the largest free buddy; 0 if nothing is free.
  std::uint8_t largest_order() const { return nodes_[1]; }
  // The order of the buddy that Take needs.
  static std::uint8_t OrderFor(std::uint32_t units, std::uint32_t alignment);

 private:
  // The part of the tree below one node.
  struct Buddy {
    std::uint32_t node = 1;
    std::uint32_t begin = 0;
    std::uint32_t units = 0;

    std::uint32_t end() const { return begin + units; }
    Buddy Left() const { return {2 * node, begin, units / 2}; }
    Buddy Right() const { return {2 * node + 1, begin + units / 2, units / 2}; }
  };

  Buddy Root() const { return {1, 0, units_}; }
  bool IsFree(Buddy buddy, std::uint32_t begin, std::uint32_t end) const;
  void Mark(Buddy buddy, std::uint32_t begin, std::uint32_t end, bool is_free);

  std::uint32_t units_;
  // For each buddy, the order of the largest free buddy inside (or the buddy itself); children are
  // at 2 * index and 2 * index + 1. A buddy taken whole has order 0, and its children are stale.
  std::vector<std::uint8_t> nodes_;
};

}  // namespace torpor::memory
