#include "memory/chunk_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace torpor::memory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ChunkPool, TakesAllOrNothing) {
  ChunkPool pool;
  pool.Add(1);
  pool.Add(2);
  std::vector<ChunkPool::Chunk> taken;
  EXPECT_FALSE(pool.Take(3, taken));
  EXPECT_THAT(taken, IsEmpty());
  EXPECT_TRUE(pool.Take(2, taken));
  EXPECT_THAT(taken, ElementsAre(1, 2));
  EXPECT_EQ(pool.free_chunks(), 0u);
  EXPECT_EQ(pool.total_chunks(), 2u);
}

TEST(ChunkPool, ReturnedChunksAreTakenFirst) {
  ChunkPool pool;
  for (ChunkPool::Chunk chunk : {1, 2, 3}) pool.Add(chunk);
  std::vector<ChunkPool::Chunk> taken;
  ASSERT_TRUE(pool.Take(1, taken));
  pool.Return(taken);
  std::vector<ChunkPool::Chunk> again;
  ASSERT_TRUE(pool.Take(1, again));
  EXPECT_EQ(again, taken);
}

}  // namespace
}  // namespace torpor::memory
