#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/units.h"

namespace torpor::memory {

// Physical memory comes in handles of two sizes: mapping costs by the handle, and one can only be
// mapped whole, so most of a function's memory should be large ones and its ragged ends small.
struct HandleSizes {
  Bytes small_bytes = 2 * kMiB;
  Bytes large_bytes = 32 * kMiB;  // a multiple of the small

  std::size_t small_per_large() const { return large_bytes / small_bytes; }
};

// A number of either size.
struct HandleCounts {
  std::size_t small = 0;
  std::size_t large = 0;

  Bytes bytes(const HandleSizes& sizes) const {
    return small * sizes.small_bytes + large * sizes.large_bytes;
  }
  friend bool operator==(const HandleCounts&, const HandleCounts&) = default;
};

// Whatever the caller names by 64 bits (a handle of the driver).
using Handle = unsigned long long;

struct Handles {
  std::vector<Handle> small;
  std::vector<Handle> large;

  HandleCounts counts() const { return {small.size(), large.size()}; }
};

// Which physical handles of a GPU are free. Not thread-safe.
class HandlePool {
 public:
  // New ones, free: they are taken after those that have been used, and removed before.
  void Add(const Handles& handles);

  // Appends so many free handles to `taken`; or takes none and gives false.
  bool Take(HandleCounts counts, Handles& taken);

  // What Take gave out is free again. The most recently used are taken first: their page-table
  // entries and, on the emulator, their pages are warm.
  void Return(const Handles& handles);

  // As Take, but the handles leave the pool for good: those longest unused.
  bool Remove(HandleCounts counts, Handles& removed);

  HandleCounts free() const { return free_.counts(); }
  HandleCounts total() const { return total_; }

 private:
  bool Has(HandleCounts counts) const;

  Handles free_;
  HandleCounts total_;
};

}  // namespace torpor::memory
