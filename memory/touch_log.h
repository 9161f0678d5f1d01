#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "base/units.h"
#include "memory/extent_set.h"

namespace torpor::memory {

// Records how work uses a session's allocations on a GPU: the order of first touches, and which
// allocations the client uploads to. Allocations do not overlap and are named by their offsets.
// Pure bookkeeping without I/O; not thread-safe.
class TouchLog {
 public:
  // Maximum number of recorded touches, as the record travels to torpord.
  static constexpr std::size_t kMaxNoted = 4096;

  // Replaces all allocations; none is touched or uploaded to.
  void Reset(std::span<const Extent> allocations);
  void Add(Extent allocation);
  // Removes all allocations inside of `extent`.
  void Remove(Extent extent);

  // Makes every allocation untouched.
  void Restart();
  // Call before work uses these bytes.
  void Touch(Extent range);
  // Offsets of the allocations touched since Restart, in the order of their first touch.
  const std::vector<Bytes>& order() const { return order_; }

  // Notes that the client has written these bytes.
  void Upload(Extent range);
  // Returns allocations uploaded to since the last return, ascending, and forgets these uploads.
  // The sum is at most `max_bytes`; allocations that do not fit stay for later.
  std::vector<Extent> TakeUploaded(Bytes max_bytes = std::numeric_limits<Bytes>::max());
  bool has_uploaded() const;

  // Returns all allocations, ascending.
  std::vector<Extent> allocations() const;

 private:
  struct Allocation {
    Bytes end = 0;
    bool is_touched = false;
    bool is_uploaded = false;
  };
  using Allocations = std::map<Bytes, Allocation>;  // by begin

  // Finds the first allocation that ends beyond `offset`.
  Allocations::iterator FirstBeyond(Bytes offset);

  Allocations allocations_;
  std::vector<Bytes> order_;
};

}  // namespace torpor::memory
