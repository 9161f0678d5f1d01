#include "memory/trace/caching_allocator.h"

#include <gtest/gtest.h>

#include <vector>

namespace torpor::memory {
namespace {

using Segments = std::vector<CachingAllocator::Segment>;

TEST(CachingAllocator, AsksForPyTorchsSegments) {
  CachingAllocator allocator;
  allocator.Allocate(1);
  allocator.Allocate(1 * kMiB);
  allocator.Allocate(1 * kMiB + 1);
  allocator.Allocate(9 * kMiB);
  allocator.Allocate(10 * kMiB);
  allocator.Allocate(11 * kMiB);
  EXPECT_EQ(allocator.TakeNewSegments(),
            (Segments{{0, 2 * kMiB}, {1, 20 * kMiB}, {2, 10 * kMiB}, {3, 12 * kMiB}}));
  EXPECT_EQ(allocator.TakeNewSegments(), Segments{});
}

TEST(CachingAllocator, SaysWhereATensorLies) {
  CachingAllocator allocator;
  const auto large = allocator.Allocate(8 * kMiB);
  const auto small = allocator.Allocate(1000);
  const auto next = allocator.Allocate(8 * kMiB);
  EXPECT_EQ(allocator.PlaceOf(large), (CachingAllocator::Place{0, 0}));
  EXPECT_EQ(allocator.PlaceOf(small), (CachingAllocator::Place{1, 0}));
  EXPECT_EQ(allocator.PlaceOf(next), (CachingAllocator::Place{0, 8 * kMiB}));
}

TEST(CachingAllocator, ReusesWhatIsFree) {
  CachingAllocator allocator;
  const auto tensor = allocator.Allocate(12 * kMiB);
  allocator.Free(tensor);
  EXPECT_EQ(allocator.Allocate(12 * kMiB), tensor);
  EXPECT_EQ(allocator.TakeNewSegments().size(), 1u);
}

TEST(CachingAllocator, EmptyingTheCacheGivesWholeSegmentsBack) {
  CachingAllocator allocator;
  const auto first = allocator.Allocate(8 * kMiB);
  const auto second = allocator.Allocate(8 * kMiB);
  const auto third = allocator.Allocate(30 * kMiB);
  allocator.Free(first);
  allocator.Free(third);
  allocator.EmptyCache();
  EXPECT_EQ(allocator.TakeFreedSegments(), (Segments{{1, 30 * kMiB}}));
  allocator.Free(second);
  allocator.EmptyCache();
  EXPECT_EQ(allocator.TakeFreedSegments(), (Segments{{0, 20 * kMiB}}));
}

}  // namespace
}  // namespace torpor::memory
