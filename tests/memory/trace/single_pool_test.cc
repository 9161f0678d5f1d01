#include "memory/trace/single_pool.h"

#include <gtest/gtest.h>

#include <memory>

namespace torpor::memory {
namespace {

class SinglePoolTest : public testing::Test {
 protected:
  static BlockRequest Request(Bytes bytes, Bytes alignment = 512) {
    return {Owner{1}, bytes, alignment};
  }

  SinglePool pool_{std::make_unique<ArenaSource>(100 * kMiB)};
};

TEST_F(SinglePoolTest, AReleasedBlockServesWhateverFitsInIt) {
  const Block large = *pool_.Take(Request(20 * kMiB));
  const Block small = *pool_.Take(Request(4 * kMiB));
  pool_.Release(Request(20 * kMiB), large);
  pool_.Release(Request(4 * kMiB), small);
  EXPECT_EQ(pool_.Take(Request(3 * kMiB)), small);
  EXPECT_EQ(pool_.Take(Request(3 * kMiB)), large);
  EXPECT_EQ(pool_.source_calls(), 2u);
  EXPECT_EQ(pool_.cached_bytes(), 0u);
}

TEST_F(SinglePoolTest, CachedBlocksAreGivenBackForOneThatNoneOfThemServes) {
  const Block first = *pool_.Take(Request(50 * kMiB));
  const Block second = *pool_.Take(Request(50 * kMiB));
  pool_.Release(Request(50 * kMiB), first);
  pool_.Release(Request(50 * kMiB), second);
  EXPECT_EQ(pool_.largest_request(), 100 * kMiB);
  EXPECT_TRUE(pool_.Take(Request(80 * kMiB)));
  EXPECT_EQ(pool_.source_calls(), 2u + 5u);
}

TEST_F(SinglePoolTest, WhatIsCachedKeepsItsAlignment) {
  const Block odd = *pool_.Take(Request(512));
  const Block other = *pool_.Take(Request(512));
  pool_.Release(Request(512), other);
  EXPECT_NE(pool_.Take(Request(512, 4096)), other);
  pool_.Release(Request(512), odd);
  EXPECT_EQ(pool_.Take(Request(512, 4096)), odd);
}

}  // namespace
}  // namespace torpor::memory
