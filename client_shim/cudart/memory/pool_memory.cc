#include "client_shim/cudart/memory/pool_memory.h"

#include <algorithm>
#include <iterator>

#include "base/units.h"

namespace torpor::shim {

void PoolMemory::Level::Add(std::uint64_t bytes) {
  now += bytes;
  high = std::max(high, now);
}

std::uint64_t PoolMemory::Take(std::uint64_t bytes, std::uint64_t stream) {
  ForgetPassedPoints();
  FreePointPtr none;
  return TakeFirst(
      bytes, [stream](const FreePointPtr& point) { return !point || point->stream() == stream; },
      none);
}

std::uint64_t PoolMemory::TakeAfter(std::uint64_t bytes, FreePointPtr& after) {
  return TakeFirst(
      bytes, [](const FreePointPtr&) { return true; }, after);
}

// Finds the smallest usable block that fits.
template <typename Usable>
std::uint64_t PoolMemory::TakeFirst(std::uint64_t bytes, const Usable& usable,
                                    FreePointPtr& point) {
  const std::uint64_t need = RoundUp(bytes, kAlignment);
  const auto fits = std::find_if(
      free_.lower_bound({need, 0}), free_.end(),
      [&](const auto& candidate) { return usable(blocks_.at(candidate.second).point); });
  if (fits == free_.end()) return 0;
  const auto block = blocks_.find(fits->second);
  const std::uint64_t begin = block->first;
  free_.erase(fits);
  waiting_.erase(begin);
  if (block->second.bytes > need) {
    Block rest = block->second;
    rest.bytes -= need;
    block->second.bytes = need;
    if (rest.point) waiting_.insert(begin + need);
    AddFree(blocks_.emplace(begin + need, std::move(rest)).first);
  }
  block->second.in_use = true;
  point = std::exchange(block->second.point, nullptr);
  used_.Add(need);
  return begin;
}

void PoolMemory::AddSegment(std::uint64_t begin, std::uint64_t bytes) {
  segments_.emplace(begin, bytes);
  AddFree(blocks_.emplace(begin, Block{bytes, begin, false, nullptr}).first);
  reserved_.Add(bytes);
}

bool PoolMemory::Free(std::uint64_t address, FreePointPtr point) {
  const auto block = blocks_.find(address);
  if (block == blocks_.end() || !block->second.in_use) return false;
  block->second.in_use = false;
  block->second.point = std::move(point);
  used_.Subtract(block->second.bytes);
  AddFree(block);
  if (block->second.point) {
    waiting_.insert(address);
  } else {
    Join(block);
  }
  return true;
}

void PoolMemory::ForgetPassedPoints() {
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto block = blocks_.find(*next);
    if (!block->second.point->IsPassed()) {
      ++next;
      continue;
    }
    next = waiting_.erase(next);
    block->second.point = nullptr;
    Join(block);
  }
}

void PoolMemory::Join(Blocks::iterator block) {
  const auto joins = [&](const Blocks::value_type& other) {
    return !other.second.in_use && !other.second.point &&
           other.second.segment == block->second.segment;
  };
  const auto swallow_next = [this](Blocks::iterator first) {
    const auto second = std::next(first);
    EraseFree(first);
    EraseFree(second);
    first->second.bytes += second->second.bytes;
    blocks_.erase(second);
    AddFree(first);
  };
  if (const auto next = std::next(block); next != blocks_.end() && joins(*next))
    swallow_next(block);
  if (block == blocks_.begin()) return;
  if (const auto previous = std::prev(block); joins(*previous)) swallow_next(previous);
}

std::vector<std::uint64_t> PoolMemory::TakeOutUnused(std::uint64_t keep) {
  ForgetPassedPoints();
  std::vector<std::uint64_t> taken;
  for (auto segment = segments_.begin(); segment != segments_.end();) {
    const auto [begin, bytes] = *segment;
    const auto block = blocks_.find(begin);
    const bool is_unused =
        !block->second.in_use && !block->second.point && block->second.bytes == bytes;
    if (!is_unused || reserved_.now - bytes < keep) {
      ++segment;
      continue;
    }
    EraseFree(block);
    blocks_.erase(block);
    segment = segments_.erase(segment);
    reserved_.Subtract(bytes);
    taken.push_back(begin);
  }
  return taken;
}

bool PoolMemory::FindRoom(std::uint64_t address, std::uint64_t& room) const {
  const auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return false;
  const auto& [begin, block] = *std::prev(after);
  if (address - begin >= block.bytes) return false;
  room = block.in_use ? begin + block.bytes - address : 0;
  return true;
}

}  // namespace torpor::shim
