#include "server/executor/image/physical_pool.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/server/executor/gpu/fake_cuda.h"

namespace torpor::executor {
namespace {

constexpr Bytes kChunk = FakeCuda::kChunk;

class PhysicalPoolTest : public testing::Test {
 protected:
  FakeCuda cuda_;
  std::unique_ptr<Device> device_ = *Device::Open(cuda_.driver(), 0);
};

TEST_F(PhysicalPoolTest, OfAShortGpuIsWhatTheDriverGives) {
  cuda_.LimitChunks(2);
  const auto pool = *PhysicalPool::Create(*device_, 4 * kChunk, kChunk);
  EXPECT_EQ(pool->pool_bytes(), 2 * kChunk);
  EXPECT_TRUE(absl::IsResourceExhausted(pool->Take(3).status()));
  const auto two = pool->Take(2);
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(pool->free_bytes(), 0u);
  pool->Return(*two);
}

TEST_F(PhysicalPoolTest, OfAShortGpuLeavesTheDriverItsReserve) {
  cuda_.LimitChunks(9);
  const auto pool = *PhysicalPool::Create(*device_, 12 * kChunk, kChunk, 2 * kChunk);
  EXPECT_EQ(pool->pool_bytes(), 7 * kChunk);
  EXPECT_TRUE(absl::IsResourceExhausted(pool->Take(8).status()));
  // The driver has the memory again.
  EXPECT_EQ((*PhysicalPool::Create(*device_, 2 * kChunk, kChunk))->pool_bytes(), 2 * kChunk);
}

TEST_F(PhysicalPoolTest, OfAGpuWithEnoughNothingGoesBack) {
  cuda_.LimitChunks(12);
  const auto pool = *PhysicalPool::Create(*device_, 12 * kChunk, kChunk, 2 * kChunk);
  EXPECT_EQ(pool->pool_bytes(), 12 * kChunk);
}

TEST_F(PhysicalPoolTest, AGpuWithoutMemoryHasNoPool) {
  cuda_.LimitChunks(0);
  EXPECT_TRUE(absl::IsResourceExhausted(PhysicalPool::Create(*device_, kChunk, kChunk).status()));
}

TEST_F(PhysicalPoolTest, ChunksMayBeOfAnySizeThatTheDriverGives) {
  for (const Bytes chunk : {kChunk, 4 * kChunk, 16 * kChunk}) {
    const auto pool = *PhysicalPool::Create(*device_, 33 * kChunk, chunk);
    EXPECT_EQ(pool->chunk_bytes(), chunk);
    EXPECT_EQ(pool->pool_bytes(), 33 * kChunk / chunk * chunk);
    const auto all = pool->Take(pool->pool_bytes() / chunk);
    ASSERT_TRUE(all.ok());
    EXPECT_TRUE(absl::IsResourceExhausted(pool->Take(1).status()));
    pool->Return(*all);
    EXPECT_EQ(pool->free_bytes(), pool->pool_bytes());
  }
}

TEST_F(PhysicalPoolTest, MemoryThatCannotBeSharedServesThisGpu) {
  EXPECT_TRUE((*PhysicalPool::Create(*device_, kChunk, kChunk))->can_export());
  cuda_.RefuseExports();
  const auto pool = *PhysicalPool::Create(*device_, 2 * kChunk, kChunk);
  EXPECT_FALSE(pool->can_export());
  const auto all = pool->Take(2);
  ASSERT_TRUE(all.ok());
  pool->Return(*all);
}

TEST_F(PhysicalPoolTest, RefusesSizesThatDoNotFit) {
  EXPECT_TRUE(
      absl::IsInvalidArgument(PhysicalPool::Create(*device_, 4 * kChunk, 3 * kChunk / 2).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(PhysicalPool::Create(*device_, kChunk, 2 * kChunk).status()));
}

}  // namespace
}  // namespace torpor::executor
