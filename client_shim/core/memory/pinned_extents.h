#pragma once

#include <cstdint>
#include <map>

namespace torpor::shim {

// Addresses at which a program has had pinned or managed memory. Whether a word of a command may be
// such an address: two small numbers side by side look like many addresses, so each place counts,
// and not the whole range that a process may get. Not thread-safe.
class PinnedExtents {
 public:
  // Memory of `bytes` at `begin` was allocated. Freed memory stays: its place is used again.
  void Add(std::uint64_t begin, std::uint64_t bytes);
  bool IsEmpty() const { return ends_.empty(); }
  // Whether the address is inside, or within a page around, as of arrays that count from one.
  bool Contain(std::uint64_t address) const;

 private:
  // Every word of every launch is looked up, and hardly any is near pinned memory.
  bool IsOutside(std::uint64_t address) const { return address < begin_ || address >= end_; }

  std::map<std::uint64_t, std::uint64_t> ends_;  // by begin, a page wider on both sides, disjoint
  std::uint64_t begin_ = 0;                      // of the first
  std::uint64_t end_ = 0;                        // of the last
};

}  // namespace torpor::shim
