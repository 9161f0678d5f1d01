#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <vector>

#include "base/units.h"
#include "memory/extent_set.h"

namespace torpor::memory {

// An allocation as a swap-in brings it.
struct SwapAllocation {
  Extent extent;
  // It holds addresses of the session's memory: whoever reads it may read anything.
  bool holds_addresses = false;

  friend bool operator==(const SwapAllocation&, const SwapAllocation&) = default;
};

// What a session's work has shown of its memory, over all GPUs and leases, and how to swap it in
// for that. Allocations are known by their offset. Pure bookkeeping; not thread-safe.
class SwapHistory {
 public:
  // Leases of a kind that must have touched the memory in the same order before it counts as known.
  static constexpr int kAgreements = 2;

  // Whether the next lease is to tell in which order it touches the allocations.
  bool is_learning() const { return agreements_ < kAgreements; }

  // A lease has ended which touched `order` first, one after another. What a lease outside of
  // requests did, starting up for example, counts only until there was a request. `is_whole`: all
  // that it touched; else only what it did while a swap-in was under way.
  void OnLease(std::span<const Bytes> order, bool is_request, bool is_whole);

  // These allocations have been written by the client.
  void OnUploaded(std::span<const Bytes> offsets);

  // Of the allocations looked at, all or some, `holders` hold addresses.
  void OnLookedAt(std::span<const Bytes> holders, bool at_all);
  // What was not looked at since it was written may hold addresses.
  void OnUnseenChanges() { holders_known_ = false; }
  // Whether all allocations have been looked at.
  bool knows_holders() const { return holders_known_; }

  void OnFreed(Bytes offset);

  // How to bring `allocations` (ascending).
  std::vector<SwapAllocation> Plan(std::span<const Extent> allocations) const;

 private:
  std::vector<Bytes> order_;  // of first touch
  bool is_of_request_ = false;
  int agreements_ = 0;  // leases that went as the one before
  std::set<Bytes> uploaded_;
  std::set<Bytes> holders_;
  bool holders_known_ = false;
};

}  // namespace torpor::memory
