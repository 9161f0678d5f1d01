#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>

namespace torpor::memory {

// Partitions ordered by free room. A partition without room (0) is not in the index. Not
// thread-safe.
class RoomIndex {
 public:
  // Changes a partition's room from `from`, as noted before, to `to`.
  void Change(std::uint32_t partition, std::uint32_t from, std::uint32_t to) {
    if (from == to) return;
    if (from == 0) {
      by_room_.emplace(to, partition);
    } else if (to == 0) {
      by_room_.erase({from, partition});
    } else {  // keep the node: every allocation comes here
      auto node = by_room_.extract({from, partition});
      node.value().first = to;
      by_room_.insert(std::move(node));
    }
  }

  // Returns the fullest partition with at least `room`, the lowest of equally full partitions.
  std::optional<std::uint32_t> Find(std::uint32_t room) const {
    const auto found = by_room_.lower_bound({room, 0});
    if (found == by_room_.end()) return std::nullopt;
    return found->second;
  }

  std::uint32_t largest_room() const { return by_room_.empty() ? 0 : by_room_.rbegin()->first; }

 private:
  std::set<std::pair<std::uint32_t, std::uint32_t>> by_room_;  // (room, partition)
};

}  // namespace torpor::memory
