#include "memory/window_backing.h"

#include <algorithm>

namespace torpor::memory {

std::optional<BackingChange> WindowBacking::Plan(const ExtentSet& occupied, const Backing& backed,
                                                 HandleCounts available) const {
  std::vector<Need> needs = NeedsOf(occupied, backed);
  // Those that gain most by a large handle first.
  std::stable_sort(needs.begin(), needs.end(), [](const Need& a, const Need& b) {
    return a.may_be_large != b.may_be_large ? a.may_be_large : a.chunks.size() > b.chunks.size();
  });
  std::size_t small = 0;
  for (const Need& need : needs) small += need.chunks.size();

  BackingChange plan;
  auto need = needs.begin();
  for (; need != needs.end() && need->may_be_large && plan.large.size() < available.large; ++need) {
    if (!IsMostlyOccupied(*need) && small <= available.small) break;
    plan.large.push_back(need->window);
    small -= need->chunks.size();
  }
  if (small > available.small) return std::nullopt;
  for (; need != needs.end(); ++need) {
    plan.small.insert(plan.small.end(), need->chunks.begin(), need->chunks.end());
  }
  std::sort(plan.large.begin(), plan.large.end());
  std::sort(plan.small.begin(), plan.small.end());
  return plan;
}

std::vector<WindowBacking::Need> WindowBacking::NeedsOf(const ExtentSet& occupied,
                                                        const Backing& backed) const {
  std::vector<Need> needs;
  std::uint64_t next = 0;  // two extents may have parts in one chunk
  for (const Extent& extent : occupied.extents()) {
    std::uint64_t chunk = std::max(next, extent.begin / sizes_.small_bytes);
    for (; chunk * sizes_.small_bytes < extent.end; ++chunk) {
      const std::uint64_t window = chunk / sizes_.small_per_large();
      if (backed.small.contains(chunk) || backed.large.contains(window)) continue;
      if (needs.empty() || needs.back().window != window) {
        needs.push_back({window, {}, MayBeLarge(window, backed)});
      }
      needs.back().chunks.push_back(chunk);
    }
    next = chunk;
  }
  return needs;
}

bool WindowBacking::MayBeLarge(std::uint64_t window, const Backing& backed) const {
  if ((window + 1) * sizes_.large_bytes > range_bytes_) return false;
  const auto mapped = backed.small.lower_bound(window * sizes_.small_per_large());
  return mapped == backed.small.end() || *mapped / sizes_.small_per_large() != window;
}

bool WindowBacking::IsMostlyOccupied(const Need& need) const {
  return static_cast<double>(need.chunks.size()) >=
         large_from_share_ * static_cast<double>(sizes_.small_per_large());
}

BackingChange WindowBacking::Unused(Extent freed, const ExtentSet& live,
                                    const Backing& backed) const {
  const auto collect = [&](const std::set<std::uint64_t>& all, Bytes bytes,
                           std::vector<std::uint64_t>& unused) {
    for (auto it = all.lower_bound(freed.begin / bytes); it != all.end() && *it * bytes < freed.end;
         ++it) {
      if (live.Within({*it * bytes, (*it + 1) * bytes}).empty()) unused.push_back(*it);
    }
  };
  BackingChange change;
  collect(backed.small, sizes_.small_bytes, change.small);
  collect(backed.large, sizes_.large_bytes, change.large);
  return change;
}

Bytes WindowBacking::BackedBytes(const Backing& backed) const {
  return HandleCounts{backed.small.size(), backed.large.size()}.bytes(sizes_);
}

}  // namespace torpor::memory
