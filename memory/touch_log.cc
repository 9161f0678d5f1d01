#include "memory/touch_log.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace torpor::memory {

TouchLog::Allocations::iterator TouchLog::FirstBeyond(Bytes offset) {
  const auto after = allocations_.upper_bound(offset);
  if (after == allocations_.begin()) return after;
  const auto before = std::prev(after);
  return before->second.end > offset ? before : after;
}

void TouchLog::Reset(std::span<const Extent> allocations) {
  allocations_.clear();
  order_.clear();
  for (const Extent& allocation : allocations) Add(allocation);
}

void TouchLog::Add(Extent allocation) { allocations_[allocation.begin] = {allocation.end}; }

void TouchLog::Remove(Extent extent) {
  allocations_.erase(allocations_.lower_bound(extent.begin), allocations_.lower_bound(extent.end));
}

void TouchLog::Restart() {
  order_.clear();
  for (auto& [begin, allocation] : allocations_) allocation.is_touched = false;
}

void TouchLog::Touch(Extent range) {
  for (auto at = FirstBeyond(range.begin); at != allocations_.end() && at->first < range.end;
       ++at) {
    if (std::exchange(at->second.is_touched, true)) continue;
    if (order_.size() < kMaxNoted) order_.push_back(at->first);
  }
}

void TouchLog::Upload(Extent range) {
  for (auto at = FirstBeyond(range.begin); at != allocations_.end() && at->first < range.end;
       ++at) {
    at->second.is_uploaded = true;
  }
}

std::vector<Extent> TouchLog::TakeUploaded(Bytes max_bytes) {
  std::vector<Extent> uploaded;
  for (auto& [begin, allocation] : allocations_) {
    const Bytes bytes = allocation.end - begin;
    if (!allocation.is_uploaded || bytes > max_bytes) continue;
    max_bytes -= bytes;
    allocation.is_uploaded = false;
    uploaded.push_back({begin, allocation.end});
  }
  return uploaded;
}

bool TouchLog::has_uploaded() const {
  return std::ranges::any_of(allocations_, [](const auto& at) { return at.second.is_uploaded; });
}

std::vector<Extent> TouchLog::allocations() const {
  std::vector<Extent> all;
  all.reserve(allocations_.size());
  for (const auto& [begin, allocation] : allocations_) all.push_back({begin, allocation.end});
  return all;
}

}  // namespace torpor::memory
