#include "memory/trace/single_pool.h"

#include <algorithm>

namespace torpor::memory {

std::optional<Block> SinglePool::Take(const BlockRequest& request) {
  std::optional<Block> block = TakeCached(request);
  if (!block) block = TakeNew(request);
  if (block) taken_bytes_ += block->bytes;
  return block;
}

std::optional<Block> SinglePool::TakeCached(const BlockRequest& request) {
  for (auto it = by_size_.lower_bound({request.bytes, 0}); it != by_size_.end(); ++it) {
    const auto [bytes, offset] = *it;
    if (offset % request.alignment == 0) return Uncache({offset, bytes});
  }
  return std::nullopt;
}

std::optional<Block> SinglePool::TakeNew(const BlockRequest& request) {
  const Bytes bytes = RoundUp(request.bytes, kUnitBytes);
  while (true) {
    ++source_calls_;
    const std::optional<Block> block = source_->Allocate(bytes, request.alignment);
    if (block || by_size_.empty()) return block;
    const auto [largest, offset] = *by_size_.rbegin();
    ++source_calls_;
    source_->Free(Uncache({offset, largest}));
  }
}

std::optional<Block> SinglePool::TakeAt(const BlockRequest& request, Bytes offset) {
  const auto found = cached_.find(offset);
  if (found == cached_.end() || found->second < request.bytes || offset % request.alignment != 0) {
    return std::nullopt;
  }
  const Block block = Uncache({found->first, found->second});
  taken_bytes_ += block.bytes;
  return block;
}

void SinglePool::Release(const BlockRequest&, const Block& place) {
  taken_bytes_ -= place.bytes;
  cached_bytes_ += place.bytes;
  cached_.emplace(place.offset, place.bytes);
  by_size_.emplace(place.bytes, place.offset);
}

Block SinglePool::Uncache(Block block) {
  cached_bytes_ -= block.bytes;
  cached_.erase(block.offset);
  by_size_.erase({block.bytes, block.offset});
  return block;
}

Bytes SinglePool::largest_request() const {
  // Take gives all cached blocks back for such a request.
  FreeBlocks all = source_->free_blocks();
  for (const auto& [offset, bytes] : cached_) all.Add({offset, bytes});
  const Bytes cached = by_size_.empty() ? 0 : by_size_.rbegin()->first;
  return std::max(all.largest_bytes(), cached);
}

}  // namespace torpor::memory
