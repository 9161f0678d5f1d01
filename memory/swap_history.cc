#include "memory/swap_history.h"

#include <algorithm>

#include "memory/swap_planner.h"

namespace torpor::memory {

void SwapHistory::OnLease(std::span<const Bytes> order, bool is_request, bool is_whole) {
  if (order.empty() || (is_of_request_ && !is_request)) return;
  if (!is_whole) {
    const bool is_as_planned =
        order.size() <= order_.size() && std::equal(order.begin(), order.end(), order_.begin());
    if (!is_as_planned) agreements_ = 0;
    return;
  }
  const bool agrees = is_request == is_of_request_ &&
                      std::equal(order.begin(), order.end(), order_.begin(), order_.end());
  agreements_ = agrees ? agreements_ + 1 : 0;
  order_.assign(order.begin(), order.end());
  is_of_request_ = is_request;
}

void SwapHistory::OnUploaded(std::span<const Bytes> offsets) {
  uploaded_.insert(offsets.begin(), offsets.end());
}

void SwapHistory::OnLookedAt(std::span<const Bytes> holders, bool at_all) {
  if (at_all) {
    holders_.clear();
    holders_known_ = true;
  }
  holders_.insert(holders.begin(), holders.end());
}

void SwapHistory::OnFreed(Bytes offset) {
  uploaded_.erase(offset);
  holders_.erase(offset);
}

std::vector<SwapAllocation> SwapHistory::Plan(std::span<const Extent> allocations) const {
  ExtentSet uploaded;
  for (const Bytes offset : uploaded_) uploaded.Add({offset, offset + 1});
  std::vector<SwapAllocation> plan;
  plan.reserve(allocations.size());
  for (const Extent& extent : OrderForSwapIn(allocations, order_, uploaded)) {
    const auto holder = holders_.lower_bound(extent.begin);
    const bool holds = holder != holders_.end() && *holder < extent.end;
    plan.push_back({extent, !holders_known_ || holds});
  }
  return plan;
}

}  // namespace torpor::memory
