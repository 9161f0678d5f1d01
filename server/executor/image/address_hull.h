#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

#include "base/units.h"
#include "memory/extent_set.h"
#include "server/executor/gpu/address_range.h"

namespace torpor::executor {

// The least range of addresses with all that a session's allocations have ever named. Words inside
// may be addresses of the session. One thread at a time adds; any thread asks.
class AddressHull {
 public:
  // Extents are bytes from `base` on.
  explicit AddressHull(std::uint64_t base) : base_(base) {}

  void Add(memory::Extent extent) {
    begin_ = std::min<Bytes>(begin_, extent.begin);
    end_ = std::max<Bytes>(end_, extent.end);
  }
  // Empty before the first Add.
  AddressRange range() const {
    const Bytes begin = begin_;
    const Bytes end = end_;
    return begin < end ? AddressRange{base_ + begin, end - begin} : AddressRange{};
  }

 private:
  const std::uint64_t base_;
  std::atomic<Bytes> begin_{std::numeric_limits<Bytes>::max()};
  std::atomic<Bytes> end_{0};
};

}  // namespace torpor::executor
