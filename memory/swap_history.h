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
  // Contains addresses of the session's memory, so that a kernel with a pointer to this allocation
  // may read any other.
  bool holds_addresses = false;

  friend bool operator==(const SwapAllocation&, const SwapAllocation&) = default;
};

// Learns from a session's leases, on all GPUs, how the work uses the session's memory, and plans
// the next swap-in accordingly. Allocations are named by their offsets. Pure bookkeeping without
// I/O; not thread-safe.
class SwapHistory {
 public:
  // After so many leases of one kind that touched memory in the same order, the order is known.
  static constexpr int kAgreements = 2;

  // Whether the next lease should record the order of its touches.
  bool is_learning() const { return agreements_ < kAgreements; }

  // Notes the end of a lease. `order`: the allocations in the order of their first touch.
  // `is_whole`: `order` has all touched allocations; else only those touched while a swap-in was
  // under way. A lease outside of requests, such as at startup, counts only before the first
  // request.
  void OnLease(std::span<const Bytes> order, bool is_request, bool is_whole);

  // Notes that the client has written these allocations.
  void OnUploaded(std::span<const Bytes> offsets);

  // Notes the result of a scan for addresses: `holders` contain some. `at_all`: the scan covered
  // all allocations.
  void OnLookedAt(std::span<const Bytes> holders, bool at_all);
  // Notes writes after the scan: any allocation may contain addresses now.
  void OnUnseenChanges() { holders_known_ = false; }
  // Whether the scans cover all allocations.
  bool knows_holders() const { return holders_known_; }

  void OnFreed(Bytes offset);

  // Returns the allocations (ascending) in the order in which a swap-in should bring them.
  std::vector<SwapAllocation> Plan(std::span<const Extent> allocations) const;

 private:
  std::vector<Bytes> order_;  // of first touch
  bool is_of_request_ = false;
  int agreements_ = 0;  // consecutive leases with the same order
  std::set<Bytes> uploaded_;
  std::set<Bytes> holders_;
  bool holders_known_ = false;
};

}  // namespace torpor::memory
