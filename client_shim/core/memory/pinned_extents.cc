#include "client_shim/core/memory/pinned_extents.h"

#include <algorithm>
#include <iterator>

namespace torpor::shim {
namespace {

constexpr std::uint64_t kAround = 4096;

}  // namespace

void PinnedExtents::Add(std::uint64_t begin, std::uint64_t bytes) {
  std::uint64_t from = begin - std::min(begin, kAround);
  std::uint64_t to = begin + bytes + kAround;
  auto at = ends_.upper_bound(from);
  if (at != ends_.begin() && std::prev(at)->second >= from) --at;
  while (at != ends_.end() && at->first <= to) {
    from = std::min(from, at->first);
    to = std::max(to, at->second);
    at = ends_.erase(at);
  }
  ends_.emplace(from, to);
  begin_ = ends_.begin()->first;
  end_ = ends_.rbegin()->second;
}

bool PinnedExtents::Contain(std::uint64_t address) const {
  if (IsOutside(address)) return false;
  const auto after = ends_.upper_bound(address);
  return after != ends_.begin() && address < std::prev(after)->second;
}

}  // namespace torpor::shim
