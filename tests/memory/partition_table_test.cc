#include "memory/partition_table.h"

#include <gtest/gtest.h>

namespace torpor::memory {
namespace {

constexpr Owner kFirst{1};
constexpr Owner kSecond{2};
constexpr Bytes kPartition = 64 * kMiB;
constexpr Tier kTwoMiB = 0;
constexpr Tier kTwentyMiB = 1;
constexpr Tier kBuddies = 2;

class PartitionTableTest : public testing::Test {
 protected:
  Tier TierOf(Bytes bytes, Bytes alignment = 512) const {
    return table_.TierOf({kFirst, bytes, alignment});
  }

  PartitionTable table_{8 * kPartition + 1, PartitionSizes{}};
};

TEST_F(PartitionTableTest, ABlockIsOfSlotsThatAreNoLargerThanItsBuddy) {
  EXPECT_EQ(TierOf(2 * kMiB), kTwoMiB);
  EXPECT_EQ(TierOf(2 * kMiB - 1), kTwoMiB);
  EXPECT_EQ(TierOf(1 * kMiB), kBuddies);
  EXPECT_EQ(TierOf(16 * kMiB), kBuddies);
  EXPECT_EQ(TierOf(16 * kMiB + 1), kTwentyMiB);
  EXPECT_EQ(TierOf(20 * kMiB), kTwentyMiB);
  EXPECT_EQ(TierOf(20 * kMiB + 1), kBuddies);
  EXPECT_EQ(TierOf(20 * kMiB, 8 * kMiB), kBuddies);
  EXPECT_EQ(TierOf(kPartition), kBuddies);
  EXPECT_EQ(TierOf(kPartition + 1), PartitionTable::kRun);
}

TEST(PartitionSizesTest, SlotsFillAPartitionButForASixteenth) {
  const PartitionSizes sizes{.partition_bytes = kPartition, .buddy_unit_bytes = 2 * kMiB};
  for (const Bytes mib : {2, 4, 6, 10, 12, 20, 30, 32, 60, 62, 64}) {
    EXPECT_TRUE(sizes.MayHaveSlotsOf(mib * kMiB)) << mib;
  }
  for (const Bytes mib : {0, 1, 3, 14, 18, 24, 40, 58, 66, 128}) {
    EXPECT_FALSE(sizes.MayHaveSlotsOf(mib * kMiB)) << mib;
  }
}

TEST_F(PartitionTableTest, RoundsDownToPartitions) {
  EXPECT_EQ(table_.partitions(), 8u);
  EXPECT_EQ(table_.largest_request(), 8 * kPartition);
}

TEST_F(PartitionTableTest, APartitionIsOfATierWhileItHoldsBlocks) {
  const BlockRequest request{kFirst, 20 * kMiB, 512};
  const auto a = table_.TakeIn(3, kTwentyMiB, request);
  const auto b = table_.TakeIn(3, kTwentyMiB, request);
  const auto c = table_.TakeIn(3, kTwentyMiB, request);
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(b->offset, 3 * kPartition + 20 * kMiB);
  EXPECT_FALSE(table_.TakeIn(3, kTwentyMiB, request));
  EXPECT_EQ(table_.tier(3), kTwentyMiB);
  EXPECT_FALSE(table_.TakeAt({kFirst, 4 * kMiB, 512}, 3 * kPartition));
  table_.Release(request, *a);
  table_.Release(request, *b);
  EXPECT_EQ(table_.free_partitions(), 7u);
  table_.Release(request, *c);
  EXPECT_EQ(table_.tier(3), PartitionTable::kFree);
  EXPECT_EQ(table_.largest_request(), 8 * kPartition);
}

TEST_F(PartitionTableTest, TheFirstOwnerIsAtHomeUntilItsBlocksAreGone) {
  const BlockRequest first{kFirst, 2 * kMiB, 512};
  const BlockRequest second{kSecond, 2 * kMiB, 512};
  const auto of_first = table_.TakeIn(0, kTwoMiB, first);
  const auto of_second = table_.TakeIn(0, kTwoMiB, second);
  ASSERT_TRUE(of_first && of_second);
  EXPECT_EQ(table_.FindHome(kFirst, kTwoMiB, 1), 0u);
  EXPECT_FALSE(table_.FindHome(kSecond, kTwoMiB, 1));
  EXPECT_EQ(table_.FindShared(kTwoMiB, 1), 0u);
  table_.Release(first, *of_first);
  EXPECT_FALSE(table_.FindHome(kFirst, kTwoMiB, 1));
  table_.TakeIn(0, kTwoMiB, second);
  EXPECT_EQ(table_.FindHome(kSecond, kTwoMiB, 1), 0u);
}

TEST_F(PartitionTableTest, WhatAnOwnerHadBeforeItWasAtHomeCountsToo) {
  const BlockRequest first{kFirst, 2 * kMiB, 512};
  const BlockRequest second{kSecond, 2 * kMiB, 512};
  const auto of_first = table_.TakeIn(0, kTwoMiB, first);
  const auto earlier = table_.TakeIn(0, kTwoMiB, second);
  ASSERT_TRUE(of_first && earlier);
  table_.Release(first, *of_first);
  const auto later = table_.TakeIn(0, kTwoMiB, second);
  ASSERT_TRUE(later);
  table_.Release(second, *later);
  EXPECT_EQ(table_.FindHome(kSecond, kTwoMiB, 1), 0u);
  table_.Release(second, *earlier);
  EXPECT_FALSE(table_.FindHome(kSecond, kTwoMiB, 1));
}

TEST_F(PartitionTableTest, TheTailOfALargeBlockIsAHomeForSmallOnes) {
  const BlockRequest large{kFirst, 2 * kPartition + 6 * kMiB, 512};
  const auto place = table_.TakeRun(large);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->bytes, large.bytes);
  EXPECT_EQ(table_.free_partitions(), 5u);
  EXPECT_EQ(table_.tier(1), PartitionTable::kRun);
  EXPECT_EQ(table_.FindHome(kFirst, kBuddies, 1), 2u);
  const BlockRequest small{kFirst, 32 * kMiB, 512};
  const auto beside = table_.TakeIn(2, kBuddies, small);
  ASSERT_TRUE(beside);
  EXPECT_EQ(beside->offset, 2 * kPartition + 32 * kMiB);
  table_.Release(large, *place);
  EXPECT_EQ(table_.free_partitions(), 7u);
  EXPECT_EQ(table_.tier(2), kBuddies);
  table_.Release(small, *beside);
  EXPECT_EQ(table_.taken_bytes(), 0u);
  EXPECT_EQ(table_.free_partitions(), 8u);
}

TEST_F(PartitionTableTest, TakesExactPlacesOnlyWhereABlockCouldBe) {
  const BlockRequest fixed{kFirst, 20 * kMiB, 512};
  EXPECT_FALSE(table_.TakeAt(fixed, 10 * kMiB));
  EXPECT_FALSE(table_.TakeAt(fixed, 60 * kMiB));
  EXPECT_FALSE(table_.TakeAt(fixed, 8 * kPartition));
  EXPECT_TRUE(table_.TakeAt(fixed, 40 * kMiB));
  EXPECT_FALSE(table_.TakeAt(fixed, 40 * kMiB));

  const BlockRequest buddy{kFirst, 6 * kMiB, 512};
  EXPECT_FALSE(table_.TakeAt(buddy, kPartition + 4 * kMiB));
  EXPECT_TRUE(table_.TakeAt(buddy, kPartition + 8 * kMiB));

  const BlockRequest run{kFirst, 2 * kPartition, 512};
  EXPECT_FALSE(table_.TakeAt(run, 1 * kPartition));
  EXPECT_FALSE(table_.TakeAt(run, 7 * kPartition));
  EXPECT_TRUE(table_.TakeAt(run, 6 * kPartition));
  EXPECT_EQ(table_.free_partitions(), 4u);
}

TEST_F(PartitionTableTest, HiddenPartitionsAreNotFound) {
  table_.TakeIn(0, kTwoMiB, {kFirst, 2 * kMiB, 512});
  table_.Hide(0);
  EXPECT_FALSE(table_.FindHome(kFirst, kTwoMiB, 1));
  EXPECT_FALSE(table_.FindShared(kTwoMiB, 1));
  table_.Show(0);
  EXPECT_EQ(table_.FindHome(kFirst, kTwoMiB, 1), 0u);
}

}  // namespace
}  // namespace torpor::memory
