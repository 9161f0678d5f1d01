#include "client_shim/cudart/managed/managed_ranges.h"

#include <iterator>

#include "client_shim/cudart/call/entry.h"

namespace torpor::shim {
namespace {

using Parts = std::map<std::uint64_t, ManagedAdvice>;

// Cuts the part containing `at` in two and returns the part that begins at `at`.
Parts::iterator CutAt(Parts& parts, std::uint64_t at) {
  const auto containing = std::prev(parts.upper_bound(at));
  return parts.emplace(at, containing->second).first;
}

}  // namespace

void ManagedRanges::Add(std::uint64_t begin, std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  allocations_[begin] = {bytes, {{begin, {}}}};
}

bool ManagedRanges::Remove(std::uint64_t begin) {
  std::lock_guard lock(mutex_);
  return allocations_.erase(begin) > 0;
}

void ManagedRanges::RemoveIf(const std::function<bool(std::uint64_t begin)>& condition) {
  std::lock_guard lock(mutex_);
  std::erase_if(allocations_, [&](const auto& allocation) { return condition(allocation.first); });
}

ManagedRanges::Allocations::const_iterator ManagedRanges::Find(std::uint64_t begin,
                                                               std::uint64_t bytes) const {
  const auto after = allocations_.upper_bound(begin);
  if (after == allocations_.begin()) return allocations_.end();
  const auto found = std::prev(after);
  const std::uint64_t offset = begin - found->first;
  const bool inside = offset < found->second.bytes && bytes <= found->second.bytes - offset;
  return inside ? found : allocations_.end();
}

bool ManagedRanges::Contains(std::uint64_t address) const { return Contains(address, 1); }

bool ManagedRanges::Contains(std::uint64_t begin, std::uint64_t bytes) const {
  std::lock_guard lock(mutex_);
  return Find(begin, bytes) != allocations_.end();
}

bool ManagedRanges::BeginsAt(std::uint64_t begin, std::uint64_t& bytes) const {
  std::lock_guard lock(mutex_);
  const auto found = allocations_.find(begin);
  if (found == allocations_.end()) return false;
  bytes = found->second.bytes;
  return true;
}

bool ManagedRanges::Advise(std::uint64_t begin, std::uint64_t bytes,
                           const std::function<void(ManagedAdvice&)>& change) {
  std::lock_guard lock(mutex_);
  const auto found = Find(begin, bytes);
  if (found == allocations_.end()) return false;
  Allocation& allocation = allocations_.at(found->first);
  const std::uint64_t end = begin + bytes;
  const bool reaches_end = end == found->first + allocation.bytes;
  const auto last = reaches_end ? allocation.parts.end() : CutAt(allocation.parts, end);
  for (auto part = CutAt(allocation.parts, begin); part != last; ++part) change(part->second);
  return true;
}

std::vector<ManagedAdvice> ManagedRanges::AdviceOf(std::uint64_t begin, std::uint64_t bytes) const {
  std::lock_guard lock(mutex_);
  std::vector<ManagedAdvice> advice;
  const auto found = Find(begin, bytes);
  if (found == allocations_.end()) return advice;
  const Parts& parts = found->second.parts;
  for (auto part = std::prev(parts.upper_bound(begin));
       part != parts.end() && part->first < begin + bytes; ++part)
    advice.push_back(part->second);
  return advice;
}

ManagedRanges& TheManagedRanges() {
  static auto* const ranges = new ManagedRanges();
  return *ranges;
}

bool IsManaged(const void* pointer) { return TheManagedRanges().Contains(Address(pointer)); }

}  // namespace torpor::shim
