#include "server/executor/image/pool_size.h"

#include <gtest/gtest.h>

namespace torpor::executor {
namespace {

TEST(PoolSizeTest, ALargeGpuKeepsThreePercentForTheDriver) {
  const PoolNeeds needs{.total = 200 * kGiB, .free = 198 * kGiB};
  EXPECT_EQ(ReserveOf(needs), 200 * kGiB / 100 * 3);
  EXPECT_EQ(PoolBytes(needs), 198 * kGiB - ReserveOf(needs));
}

TEST(PoolSizeTest, AMiddlingGpuKeepsThreeGibibytes) {
  EXPECT_EQ(PoolBytes({.total = 32 * kGiB, .free = 31 * kGiB}), 28 * kGiB);
}

TEST(PoolSizeTest, TheReserveIsAtMostAQuarter) {
  EXPECT_EQ(PoolBytes({.total = 1 * kGiB, .free = 900 * kMiB}), 644 * kMiB);
  EXPECT_EQ(ReserveOf({.total = 1 * kGiB, .reserve = 512 * kMiB}), 256 * kMiB);
}

TEST(PoolSizeTest, WhatContextAndLibrariesTookIsNotForImages) {
  EXPECT_EQ(PoolBytes({.total = 96 * kMiB, .free = 70 * kMiB, .reserve = 8 * kMiB}), 62 * kMiB);
}

TEST(PoolSizeTest, APoolIsAsLargeAsAskedWhereMemorySuffices) {
  PoolNeeds needs{.total = 96 * kMiB, .free = 96 * kMiB, .reserve = 8 * kMiB, .asked = 64 * kMiB};
  EXPECT_EQ(PoolBytes(needs), 64 * kMiB);
  needs.free = 60 * kMiB;
  EXPECT_EQ(PoolBytes(needs), 52 * kMiB);
}

TEST(PoolSizeTest, WithoutFreeMemoryThereIsNoPool) {
  EXPECT_EQ(PoolBytes({.total = 96 * kMiB, .free = 5 * kMiB, .reserve = 8 * kMiB}), 0u);
}

TEST(PoolSizeTest, AShortPoolGivesTheReserveBack) {
  EXPECT_EQ(ChunksToGiveBack(60'000, 2 * kMiB, 4 * kGiB), 2048u);
  EXPECT_EQ(ChunksToGiveBack(100, 32 * kMiB, 33 * kMiB), 2u) << "the driver has all of its reserve";
  EXPECT_EQ(ChunksToGiveBack(100, 2 * kMiB, 0), 0u);
}

TEST(PoolSizeTest, AShortPoolGivesAtMostAQuarterBack) {
  EXPECT_EQ(ChunksToGiveBack(9, 2 * kMiB, 3 * kGiB), 2u);
  EXPECT_EQ(ChunksToGiveBack(1, 2 * kMiB, 3 * kGiB), 0u);
}

}  // namespace
}  // namespace torpor::executor
