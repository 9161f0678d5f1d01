#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "base/units.h"

namespace torpor::memory {

// The bytes [begin, end) of some address range, counted from its base.
struct Extent {
  Bytes begin = 0;
  Bytes end = 0;

  Bytes bytes() const { return end - begin; }
  friend bool operator==(const Extent&, const Extent&) = default;
};

// A set of bytes as extents that neither touch nor overlap. Not thread-safe.
class ExtentSet {
 public:
  // Empty extents change nothing.
  void Add(Extent extent);
  void Remove(Extent extent);

  // Whether every byte of `extent` is in the set; true for an empty extent inside or at the end
  // of a member.
  bool Contains(Extent extent) const;
  // The parts of `extent` that are in the set, ascending; and those that are not.
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
