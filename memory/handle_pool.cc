#include "memory/handle_pool.h"

namespace torpor::memory {

void HandlePool::Add(Handle handle) {
  free_.push_back(handle);
  ++total_;
}

bool HandlePool::Take(std::size_t count, std::vector<Handle>& taken) {
  if (count > free_.size()) return false;
  const auto first = free_.end() - static_cast<std::ptrdiff_t>(count);
  taken.insert(taken.end(), first, free_.end());
  free_.erase(first, free_.end());
  return true;
}

void HandlePool::Return(std::span<const Handle> handles) {
  free_.insert(free_.end(), handles.begin(), handles.end());
}

}  // namespace torpor::memory
