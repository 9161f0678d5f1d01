#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "base/units.h"
#include "memory/extent_set.h"

namespace torpor::memory {

// What happens to each of a session's allocations while they are on a GPU: in which order they are
// touched first, and which are uploaded to. Allocations do not overlap and are known by their
// offset. Pure bookkeeping; not thread-safe.
class TouchLog {
 public:
  // More first touches than this are not noted: they are what travels to torpord.
  static constexpr std::size_t kMaxNoted = 4096;

  // Exactly these allocations, of which nothing is known.
  void Reset(std::span<const Extent> allocations);
  void Add(Extent allocation);
  // Whatever lies inside of `extent`.
  void Remove(Extent extent);

  // From now on every allocation is untouched.
  void Restart();
  // Work is about to use these bytes.
  void Touch(Extent range);
  // The allocations that were touched since Restart, in the order of their first touch.
  const std::vector<Bytes>& order() const { return order_; }

  // The client has written these bytes.
  void Upload(Extent range);
  // Allocations that were uploaded to since they were last among these, ascending: of so many bytes
  // together at most. What is larger is left.
  std::vector<Extent> TakeUploaded(Bytes max_bytes = std::numeric_limits<Bytes>::max());
  bool has_uploaded() const;

  // All, ascending.
  std::vector<Extent> allocations() const;

 private:
  struct Allocation {
    Bytes end = 0;
    bool is_touched = false;
    bool is_uploaded = false;
  };
  using Allocations = std::map<Bytes, Allocation>;  // by begin

  // The first that ends beyond `offset`.
  Allocations::iterator FirstBeyond(Bytes offset);

  Allocations allocations_;
  std::vector<Bytes> order_;
};

}  // namespace torpor::memory
