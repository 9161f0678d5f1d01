#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "base/units.h"

namespace torpor::memory {

// The bytes [begin, end) of an address range, counted from the range's base.
struct Extent {
  Bytes begin = 0;
  Bytes end = 0;

  Bytes bytes() const { return end - begin; }
  friend bool operator==(const Extent&, const Extent&) = default;
};

// A set of bytes as extents that neither touch nor overlap. Not thread-safe.
class ExtentSet {
 public:
  // Both accept any extent, overlapping or not; an empty extent has no effect.
  void Add(Extent extent);
  void Remove(Extent extent);

  // Whether every byte of `extent` is in the set; true for an empty extent inside a member or at a
  // member's end.
  bool Contains(Extent extent) const;
  // Return the parts of `extent` inside and outside of the set, ascending.
  std::vector<Extent> Within(Extent extent) const;
  std::vector<Extent> Gaps(Extent extent) const;

  bool empty() const { return extents_.empty(); }
  std::size_t count() const { return extents_.size(); }  // of members
  Bytes total_bytes() const;
  std::vector<Extent> extents() const;

 private:
  std::map<Bytes, Bytes> extents_;  // begin -> end
};

}  // namespace torpor::memory
