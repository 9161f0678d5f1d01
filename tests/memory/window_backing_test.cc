#include "memory/window_backing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <vector>

#include "memory/range_allocator.h"

namespace torpor::memory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Bytes kRange = 256 * kMiB;
constexpr HandleCounts kPlenty{1000, 1000};

class WindowBackingTest : public testing::Test {
 protected:
  void Occupy(Bytes begin_mib, Bytes end_mib) { occupied_.Add({begin_mib * kMiB, end_mib * kMiB}); }

  ExtentSet occupied_;
  Backing backed_;
  WindowBacking backing_{kRange, HandleSizes{}};
};

TEST_F(WindowBackingTest, FullAndMostlyFullWindowsGetLargeHandles) {
  Occupy(0, 32);
  Occupy(32, 56);  // 12 of 16 chunks
  Occupy(64, 86);  // 11 of 16
  const auto plan = backing_.Plan(occupied_, backed_, kPlenty);
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->large, ElementsAre(0, 1));
  EXPECT_EQ(plan->small.size(), 11u);
  EXPECT_EQ(plan->small.front(), 32u);
}

TEST_F(WindowBackingTest, AChunkThatTwoExtentsShareIsMappedOnce) {
  occupied_.Add({0, 10});
  occupied_.Add({100, 3 * kMiB});
  occupied_.Add({4 * kMiB - 1, 4 * kMiB});
  const auto plan = backing_.Plan(occupied_, backed_, kPlenty);
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->small, ElementsAre(0, 1));
}

TEST_F(WindowBackingTest, WhatIsBackedStays) {
  Occupy(0, 64);
  backed_.large = {0};
  backed_.small = {20};
  const auto plan = backing_.Plan(occupied_, backed_, kPlenty);
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->large, IsEmpty());
  EXPECT_EQ(plan->small.size(), 15u);
}

TEST_F(WindowBackingTest, TheFullestWindowsGetLargeHandlesThatAreShort) {
  Occupy(0, 26);
  Occupy(32, 64);
  const auto plan = backing_.Plan(occupied_, backed_, {13, 1});
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->large, ElementsAre(1));
  EXPECT_EQ(plan->small.size(), 13u);
}

TEST_F(WindowBackingTest, LargeHandlesServeWhereSmallOnesAreShort) {
  Occupy(0, 4);
  Occupy(32, 34);
  const auto plan = backing_.Plan(occupied_, backed_, {1, 1});
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->large, ElementsAre(0));
  EXPECT_THAT(plan->small, ElementsAre(16));
  EXPECT_FALSE(backing_.Plan(occupied_, backed_, {0, 1}));
  EXPECT_FALSE(backing_.Plan(occupied_, backed_, {2, 0}));
}

TEST_F(WindowBackingTest, AWindowThatTheRangeCutsHasSmallHandlesOnly) {
  const WindowBacking backing(48 * kMiB, HandleSizes{});
  Occupy(0, 48);
  const auto plan = backing.Plan(occupied_, backed_, kPlenty);
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->large, ElementsAre(0));
  EXPECT_EQ(plan->small.size(), 8u);
  EXPECT_FALSE(backing.Plan(occupied_, backed_, {7, 2}));
}

TEST_F(WindowBackingTest, OnlyWhatHoldsNothingLiveIsUnused) {
  backed_.large = {0, 2};
  backed_.small = {16, 17, 30};
  Occupy(10, 12);
  Occupy(34, 35);
  const BackingChange unused = backing_.Unused({12 * kMiB, 96 * kMiB}, occupied_, backed_);
  EXPECT_THAT(unused.large, ElementsAre(2));
  EXPECT_THAT(unused.small, ElementsAre(16, 30));
  EXPECT_EQ(backing_.BackedBytes(backed_), 70 * kMiB);
}

// Whatever comes and goes, all that is live is backed, and nothing that is not.
TEST_F(WindowBackingTest, FollowsARangeThatGrowsAndShrinks) {
  std::mt19937 random(5);
  RangeAllocator range(kRange, HandleSizes{}.small_bytes);
  ExtentSet live;
  std::vector<Block> blocks;
  for (int step = 0; step < 2000; ++step) {
    if (random() % 2 == 0) {
      const auto block = range.Allocate(1 + random() % (Bytes{1} << random() % 26));
      if (!block) continue;
      blocks.push_back(*block);
      live.Add({block->offset, block->end()});
      const auto plan = backing_.Plan(live, backed_, {random() % 40, random() % 3});
      if (!plan) {
        range.Free(block->offset);
        blocks.pop_back();
        live.Remove({block->offset, block->end()});
        continue;
      }
      backed_.small.insert(plan->small.begin(), plan->small.end());
      backed_.large.insert(plan->large.begin(), plan->large.end());
    } else if (!blocks.empty()) {
      const auto some = blocks.begin() + static_cast<std::ptrdiff_t>(random() % blocks.size());
      const Extent freed{some->offset, some->end()};
      range.Free(some->offset);
      live.Remove(freed);
      blocks.erase(some);
      const BackingChange unused = backing_.Unused(freed, live, backed_);
      for (const std::uint64_t chunk : unused.small) backed_.small.erase(chunk);
      for (const std::uint64_t window : unused.large) backed_.large.erase(window);
    }
    const auto missing = backing_.Plan(live, backed_, {0, 0});
    ASSERT_TRUE(missing) << "step " << step;
    ASSERT_THAT(backing_.Unused({0, kRange}, live, backed_).counts(), HandleCounts{});
    for (const std::uint64_t chunk : backed_.small)
      ASSERT_FALSE(backed_.large.contains(chunk / 16));
  }
}

// A function that allocates as PyTorch does is backed by few handles with little waste, because
// the range is filled from its begin.
TEST_F(WindowBackingTest, AFunctionsMemoryIsMostlyLargeHandles) {
  std::mt19937 random(9);
  RangeAllocator range(4 * kGiB, HandleSizes{}.small_bytes);
  std::vector<Block> blocks;
  for (int i = 0; i < 400; ++i) {
    const Bytes sizes[] = {2 * kMiB, 20 * kMiB, 20 * kMiB, (6 + random() % 30) * 2 * kMiB};
    if (const auto block = range.Allocate(sizes[random() % 4])) blocks.push_back(*block);
    if (random() % 3 != 0 || blocks.empty()) continue;
    const auto some = blocks.begin() + static_cast<std::ptrdiff_t>(random() % blocks.size());
    range.Free(some->offset);
    blocks.erase(some);
  }
  ExtentSet live;
  for (const Block& block : blocks) live.Add({block.offset, block.end()});
  const auto plan = WindowBacking(4 * kGiB, HandleSizes{}).Plan(live, backed_, kPlenty);
  ASSERT_TRUE(plan);
  const Bytes backed_bytes = plan->counts().bytes(HandleSizes{});
  EXPECT_LT(static_cast<double>(backed_bytes), 1.08 * static_cast<double>(live.total_bytes()));
  EXPECT_GT(plan->large.size() * 32 * kMiB, live.total_bytes() * 3 / 4);
}

}  // namespace
}  // namespace torpor::memory
