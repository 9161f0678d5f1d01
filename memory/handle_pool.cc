#include "memory/handle_pool.h"

namespace torpor::memory {
namespace {

void MoveLast(std::vector<Handle>& from, std::size_t count, std::vector<Handle>& to) {
  const auto first = from.end() - static_cast<std::ptrdiff_t>(count);
  to.insert(to.end(), first, from.end());
  from.erase(first, from.end());
}

void MoveFirst(std::vector<Handle>& from, std::size_t count, std::vector<Handle>& to) {
  const auto end = from.begin() + static_cast<std::ptrdiff_t>(count);
  to.insert(to.end(), from.begin(), end);
  from.erase(from.begin(), end);
}

}  // namespace

void HandlePool::Add(const Handles& handles) {
  free_.small.insert(free_.small.begin(), handles.small.begin(), handles.small.end());
  free_.large.insert(free_.large.begin(), handles.large.begin(), handles.large.end());
  total_.small += handles.small.size();
  total_.large += handles.large.size();
}

bool HandlePool::Take(HandleCounts counts, Handles& taken) {
  if (!Has(counts)) return false;
  MoveLast(free_.small, counts.small, taken.small);
  MoveLast(free_.large, counts.large, taken.large);
  return true;
}

void HandlePool::Return(const Handles& handles) {
  free_.small.insert(free_.small.end(), handles.small.begin(), handles.small.end());
  free_.large.insert(free_.large.end(), handles.large.begin(), handles.large.end());
}

bool HandlePool::Remove(HandleCounts counts, Handles& removed) {
  if (!Has(counts)) return false;
  MoveFirst(free_.small, counts.small, removed.small);
  MoveFirst(free_.large, counts.large, removed.large);
  total_.small -= counts.small;
  total_.large -= counts.large;
  return true;
}

bool HandlePool::Has(HandleCounts counts) const {
  return counts.small <= free_.small.size() && counts.large <= free_.large.size();
}

}  // namespace torpor::memory
