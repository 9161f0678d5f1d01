#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "memory/extent_set.h"
#include "memory/handle_pool.h"

namespace torpor::memory {

// What of a function's range of addresses handles are mapped at. A chunk is as large as a small
// handle, a window as a large one; both are counted from the range's begin and aligned to their
// size. No chunk of a window in `large` is in `small`.
struct Backing {
  std::set<std::uint64_t> small;  // chunks
  std::set<std::uint64_t> large;  // windows
};

// Chunks and windows to map or to unmap, ascending.
struct BackingChange {
  std::vector<std::uint64_t> small;
  std::vector<std::uint64_t> large;

  HandleCounts counts() const { return {small.size(), large.size()}; }
};

// Decides which handles back a range of addresses. Handles are mapped whole and never split, and
// what is mapped stays where it is until its memory is unused, since moving it would be copying.
//
// The rule: a window of which nothing is mapped yet gets a large handle if at least
// `large_from_share` of its chunks are occupied; every other occupied chunk a small one. Where
// large handles are short the fullest windows get them; where small ones are short the fullest of
// the other windows get large ones, though that wastes memory.
class WindowBacking {
 public:
  // `range_bytes` is a multiple of the small size; a last window that it cuts has small handles
  // only.
  WindowBacking(Bytes range_bytes, HandleSizes sizes, double large_from_share = 0.75)
      : range_bytes_(range_bytes), sizes_(sizes), large_from_share_(large_from_share) {}

  // What is to be mapped so that all of `occupied`, inside the range, is backed. Nothing where the
  // available handles do not suffice.
  std::optional<BackingChange> Plan(const ExtentSet& occupied, const Backing& backed,
                                    HandleCounts available) const;

  // What of `backed` in `freed` holds nothing of `live` any more.
  BackingChange Unused(Extent freed, const ExtentSet& live, const Backing& backed) const;

  Bytes BackedBytes(const Backing& backed) const;

 private:
  // A window's occupied chunks that nothing backs.
  struct Need {
    std::uint64_t window = 0;
    std::vector<std::uint64_t> chunks;
    bool may_be_large = false;
  };

  std::vector<Need> NeedsOf(const ExtentSet& occupied, const Backing& backed) const;
  bool MayBeLarge(std::uint64_t window, const Backing& backed) const;
  bool IsMostlyOccupied(const Need& need) const;

  const Bytes range_bytes_;
  const HandleSizes sizes_;
  const double large_from_share_;
};

}  // namespace torpor::memory
