#include "memory/extent_set.h"

#include <algorithm>
#include <iterator>

namespace torpor::memory {

void ExtentSet::Add(Extent extent) {
  if (extent.bytes() == 0) return;
  auto next = extents_.upper_bound(extent.begin);
  if (next != extents_.begin() && std::prev(next)->second >= extent.begin) --next;
  while (next != extents_.end() && next->first <= extent.end) {
    extent.begin = std::min(extent.begin, next->first);
    extent.end = std::max(extent.end, next->second);
    next = extents_.erase(next);
  }
  extents_.emplace(extent.begin, extent.end);
}

void ExtentSet::Remove(Extent extent) {
  if (extent.bytes() == 0) return;
  auto next = extents_.upper_bound(extent.begin);
  if (next != extents_.begin() && std::prev(next)->second > extent.begin) --next;
  while (next != extents_.end() && next->first < extent.end) {
    const Extent old{next->first, next->second};
    next = extents_.erase(next);
    if (old.begin < extent.begin) extents_.emplace(old.begin, extent.begin);
    if (old.end > extent.end) extents_.emplace(extent.end, old.end);
  }
}

bool ExtentSet::Contains(Extent extent) const {
  if (extent.end < extent.begin) return false;
  auto after = extents_.upper_bound(extent.begin);
  return after != extents_.begin() && std::prev(after)->second >= extent.end;
}

std::vector<Extent> ExtentSet::Within(Extent extent) const {
  std::vector<Extent> parts;
  auto next = extents_.upper_bound(extent.begin);
  if (next != extents_.begin() && std::prev(next)->second > extent.begin) --next;
  for (; next != extents_.end() && next->first < extent.end; ++next) {
    parts.push_back({std::max(extent.begin, next->first), std::min(extent.end, next->second)});
  }
  return parts;
}

std::vector<Extent> ExtentSet::Gaps(Extent extent) const {
  std::vector<Extent> gaps;
  Bytes from = extent.begin;
  for (const Extent& part : Within(extent)) {
    if (part.begin > from) gaps.push_back({from, part.begin});
    from = part.end;
  }
  if (from < extent.end) gaps.push_back({from, extent.end});
  return gaps;
}

Bytes ExtentSet::total_bytes() const {
  Bytes total = 0;
  for (const auto& [begin, end] : extents_) total += end - begin;
  return total;
}

std::vector<Extent> ExtentSet::extents() const {
  std::vector<Extent> all;
  all.reserve(extents_.size());
  for (const auto& [begin, end] : extents_) all.push_back({begin, end});
  return all;
}

}  // namespace torpor::memory
