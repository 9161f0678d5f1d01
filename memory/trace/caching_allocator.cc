#include "memory/trace/caching_allocator.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace torpor::memory {
namespace {

constexpr Bytes kUnit = 512;
constexpr Bytes kSmallTensor = 1 * kMiB;
constexpr Bytes kSmallSegment = 2 * kMiB;
constexpr Bytes kOwnSegmentFrom = 10 * kMiB;
constexpr Bytes kLargeSegment = 20 * kMiB;

Bytes SegmentFor(Bytes tensor_bytes, bool is_small) {
  if (is_small) return kSmallSegment;
  return tensor_bytes < kOwnSegmentFrom ? kLargeSegment : RoundUp(tensor_bytes, kSmallSegment);
}

}  // namespace

CachingAllocator::Tensor CachingAllocator::Allocate(Bytes bytes) {
  bytes = RoundUp(std::max(bytes, kUnit), kUnit);
  const bool is_small = bytes <= kSmallTensor;
  std::optional<Block> place = pool(is_small).Take(bytes, kUnit);
  if (!place) {
    AddSegment(bytes, is_small);
    place = pool(is_small).Take(bytes, kUnit);
  }
  tensors_[place->offset] = {bytes, is_small};
  return place->offset;
}

CachingAllocator::Place CachingAllocator::PlaceOf(Tensor tensor) const {
  const auto& [begin, open] = *std::prev(segments_.upper_bound(tensor));
  return {open.segment.number, tensor - begin};
}

void CachingAllocator::AddSegment(Bytes tensor_bytes, bool is_small) {
  const Segment segment{next_number_++, SegmentFor(tensor_bytes, is_small)};
  pool(is_small).Add({next_begin_, segment.bytes});
  segments_[next_begin_] = {segment, is_small};
  new_.push_back(segment);
  next_begin_ += segment.bytes + kUnit;  // a gap, so that segments do not coalesce
}

void CachingAllocator::Free(Tensor tensor) {
  const auto extent = tensors_.find(tensor);
  if (extent == tensors_.end()) return;
  pool(extent->second.is_small).Add({tensor, extent->second.bytes});
  tensors_.erase(extent);
}

void CachingAllocator::EmptyCache() {
  for (auto it = segments_.begin(); it != segments_.end();) {
    const OpenSegment& open = it->second;
    if (pool(open.is_small).TakeAt({it->first, open.segment.bytes})) {
      freed_.push_back(open.segment);
      it = segments_.erase(it);
    } else {
      ++it;
    }
  }
}

std::vector<CachingAllocator::Segment> CachingAllocator::TakeNewSegments() {
  return std::exchange(new_, {});
}

std::vector<CachingAllocator::Segment> CachingAllocator::TakeFreedSegments() {
  return std::exchange(freed_, {});
}

}  // namespace torpor::memory
