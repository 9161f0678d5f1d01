#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "memory/range_allocator.h"

namespace torpor::memory {

// The same bookkeeping done naively; says what a RangeAllocator does wrong.
class RangeAllocatorModel {
 public:
  RangeAllocatorModel(Bytes range_bytes, Bytes chunk_bytes)
      : range_bytes_(range_bytes), chunk_bytes_(chunk_bytes) {}

  // Empty if all is well.
  std::string OnAllocated(Bytes bytes, Block block) {
    if (block.bytes < bytes || block.bytes >= bytes + RangeAllocator::kAlignment) return "size";
    if (block.offset % RangeAllocator::kAlignment != 0) return "alignment";
    if (block.offset + block.bytes > range_bytes_) return "outside of the range";
    const auto next = live_.lower_bound(block.offset);
    if (next != live_.end() && next->first < block.offset + block.bytes) return "overlap above";
    if (next != live_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second > block.offset) return "overlap below";
    }
    live_[block.offset] = block.bytes;
    return "";
  }
  void OnFreed(Bytes offset) { live_.erase(offset); }

  std::string Compare(const RangeAllocator& allocator) const {
    Bytes live_bytes = 0;
    std::set<Bytes> chunks;
    for (const auto& [offset, bytes] : live_) {
      live_bytes += bytes;
      for (Bytes at = RoundDown(offset, chunk_bytes_); at < offset + bytes; at += chunk_bytes_) {
        chunks.insert(at);
      }
    }
    if (allocator.live_bytes() != live_bytes) return "live bytes";
    if (allocator.live_count() != live_.size()) return "live count";
    if (allocator.occupied_bytes() != chunks.size() * chunk_bytes_) return "occupied bytes";
    Bytes listed = 0;
    for (const Block& block : allocator.LiveBlocks(live_.size())) listed += block.bytes;
    if (listed != live_bytes) return "live blocks";
    listed = 0;
    for (const Block& block : allocator.OccupiedBlocks()) listed += block.bytes;
    return listed == allocator.occupied_bytes() ? "" : "occupied blocks";
  }

  const std::map<Bytes, Bytes>& live() const { return live_; }

 private:
  const Bytes range_bytes_;
  const Bytes chunk_bytes_;
  std::map<Bytes, Bytes> live_;
};

}  // namespace torpor::memory
