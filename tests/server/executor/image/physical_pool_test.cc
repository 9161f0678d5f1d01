#include "server/executor/image/physical_pool.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/server/executor/gpu/fake_cuda.h"

namespace torpor::executor {
namespace {

using memory::HandleCounts;
using memory::Handles;

constexpr Bytes kChunk = FakeCuda::kChunk;

class PhysicalPoolTest : public testing::Test {
 protected:
  std::unique_ptr<PhysicalPool> OfTwoSizes(Bytes bytes) {
    return *PhysicalPool::Create(*device_, bytes, memory::HandleSizes{}, memory::HandleBalance{});
  }
  static void WaitUntilFull(PhysicalPool& pool) { pool.Return(*pool.Take(pool.available())); }

  FakeCuda cuda_;
  std::unique_ptr<Device> device_ = *Device::Open(cuda_.driver(), 0);
};

TEST_F(PhysicalPoolTest, AShortGpuIsFoundOutWhenItsMemoryIsTaken) {
  cuda_.LimitChunks(2);
  const auto pool = *PhysicalPool::Create(*device_, 4 * kChunk, kChunk);
  EXPECT_TRUE(absl::IsResourceExhausted(pool->Take(3).status()));
  const auto two = pool->Take(2);
  ASSERT_TRUE(two.ok());
  pool->Return(*two);
}

TEST_F(PhysicalPoolTest, HasHandlesOfTwoSizes) {
  const auto pool = OfTwoSizes(1 * kGiB);
  EXPECT_EQ(pool->available(), (HandleCounts{64, 28}));
  EXPECT_EQ(pool->pool_bytes(), 1 * kGiB);
  EXPECT_EQ(pool->chunk_bytes(), kChunk);
  const auto handles = pool->Take(HandleCounts{3, 28});
  ASSERT_TRUE(handles.ok());
  EXPECT_EQ(handles->counts(), (HandleCounts{3, 28}));
  EXPECT_EQ(pool->available(), (HandleCounts{61, 0}));
  EXPECT_TRUE(absl::IsResourceExhausted(pool->Take(HandleCounts{0, 1}).status()));
  pool->Return(*handles);
}

TEST_F(PhysicalPoolTest, RefusesSizesThatDoNotFitEachOther) {
  EXPECT_TRUE(
      absl::IsInvalidArgument(PhysicalPool::Create(*device_, kGiB, {kChunk, kChunk}, {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      PhysicalPool::Create(*device_, kGiB, {kChunk, 3 * kChunk / 2}, {}).status()));
}

TEST_F(PhysicalPoolTest, ALargeHandleBecomesSmallOnesWhereThoseAreFew) {
  const auto pool = OfTwoSizes(1 * kGiB);
  WaitUntilFull(*pool);
  const Handles small = *pool->Take(HandleCounts{60, 0});
  EXPECT_EQ(*pool->Rebalance(), true);
  EXPECT_EQ(pool->available(), (HandleCounts{20, 27}));
  while (*pool->Rebalance()) continue;
  pool->Return(small);
  while (*pool->Rebalance()) continue;
  EXPECT_EQ(pool->available().bytes(pool->sizes()), 1 * kGiB);
}

TEST_F(PhysicalPoolTest, APoolOfOneSizeHasNothingToExchange) {
  const auto pool = *PhysicalPool::Create(*device_, 100 * kChunk, kChunk);
  WaitUntilFull(*pool);
  EXPECT_EQ(*pool->Rebalance(), false);
}

TEST_F(PhysicalPoolTest, AnExchangeThatTheDriverCutsShortLosesMemoryButNoHandle) {
  cuda_.LimitChunks(64 + 28 + 5);
  const auto pool = OfTwoSizes(1 * kGiB);
  WaitUntilFull(*pool);
  const Handles small = *pool->Take(HandleCounts{60, 0});
  EXPECT_FALSE(pool->Rebalance().ok());
  EXPECT_EQ(pool->available(), (HandleCounts{9, 27}));
  EXPECT_TRUE(absl::IsResourceExhausted(pool->Take(10).status()));
  pool->Return(small);
}

}  // namespace
}  // namespace torpor::executor
