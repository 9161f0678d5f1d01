#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace torpor::memory {

// A buddy system over the units [0, n), n a power of two, as a binary tree: a node is a buddy, its
// halves are its children, and it knows the largest free buddy inside. Splitting and coalescing
// are reading and writing one path, O(log n).
//
// A block need not be a power of two: it begins where a buddy does that would hold it, and the
// buddies behind its end stay free. Not thread-safe.
class BuddyTree {
 public:
  explicit BuddyTree(std::uint32_t units);

  // Takes `units` (> 0) units that begin at a multiple of `alignment` (a power of two), out of the
  // smallest free buddy that holds them; gives the first. Nothing where there is no such buddy.
  std::optional<std::uint32_t> Take(std::uint32_t units, std::uint32_t alignment);
  // Takes exactly [begin, begin + units); false where not all of them are free.
  bool TakeAt(std::uint32_t begin, std::uint32_t units);
  // Frees exactly what one of the above took.
  void Release(std::uint32_t begin, std::uint32_t units);

  // 1 + log2 of the units of the largest free buddy; 0 where nothing is free.
  std::uint8_t largest_order() const { return nodes_[1]; }
  // The order of the buddy that Take wants.
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
  // Of each buddy the order of the largest free one inside, itself included; its children from
  // 2 * index on. One that is taken whole has order 0, and its children what they had before.
  std::vector<std::uint8_t> nodes_;
};

}  // namespace torpor::memory
