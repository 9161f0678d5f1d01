#include "tools/sim/block_cache.h"

#include <gtest/gtest.h>

namespace torpor::sim {
namespace {

constexpr std::size_t kSmall = 0;
constexpr std::size_t kLarge = 1;

BlockCache MakeCache(Bytes capacity) { return BlockCache(capacity, {{10, 3}, {40, 7}}); }

TEST(BlockCache, NewBlocksWhileThereIsRoom) {
  BlockCache cache = MakeCache(50);
  EXPECT_EQ(cache.Take(kSmall), 3u);
  EXPECT_EQ(cache.Take(kLarge), 7u);
}

TEST(BlockCache, AnImageTakesTheBlocksOfAnEvictedOneOfItsModel) {
  BlockCache cache = MakeCache(10);
  cache.Take(kSmall);
  cache.Release(kSmall);
  EXPECT_EQ(cache.Take(kSmall), 0u);
}

TEST(BlockCache, OthersAreGivenBackForNewOnes) {
  BlockCache cache = MakeCache(40);
  for (int i = 0; i < 4; ++i) cache.Take(kSmall);
  for (int i = 0; i < 4; ++i) cache.Release(kSmall);
  EXPECT_EQ(cache.Take(kLarge), 4 * 3u + 7u);
}

TEST(BlockCache, TheLargestAreGivenBackFirst) {
  BlockCache cache = MakeCache(60);
  cache.Take(kSmall);
  cache.Take(kLarge);
  cache.Take(kSmall);
  cache.Release(kSmall);
  cache.Release(kLarge);
  cache.Take(kSmall);                     // what the first left
  EXPECT_EQ(cache.Take(kSmall), 7 + 3u);  // no room but for what the large one left
}

}  // namespace
}  // namespace torpor::sim
