#include "server/executor/image/mapped_backing.h"

#include <gtest/gtest.h>

#include <vector>

#include "server/executor/gpu/address_reservation.h"
#include "tests/server/executor/gpu/fake_cuda.h"

namespace torpor::executor {
namespace {

constexpr std::uint64_t kBase = 0x5500'0000'0000;  // where the sanitizers allow mappings
constexpr Bytes kChunk = FakeCuda::kChunk;
constexpr Bytes kRange = 64 * kMiB;

class MappedBackingTest : public testing::Test {
 protected:
  void SetUp() override {
    device_ = *Device::Open(cuda_.driver(), 0);
    pool_ = *PhysicalPool::Create(*device_, 8 * kChunk, kChunk);
    pool_->Return(*pool_->Take(8));  // waits until the pool is full
  }

  FakeCuda cuda_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<PhysicalPool> pool_;
};

TEST_F(MappedBackingTest, AMisplacedReservationIsAnError) {
  cuda_.MisplaceReservations();
  EXPECT_TRUE(absl::IsAlreadyExists(AddressReservation::Make(*device_, kBase, kRange).status()));
}

TEST_F(MappedBackingTest, ASessionsAddressesAreAmongTheReservedOnes) {
  MappedMemory memory(*device_, *pool_, {kBase, 2 * kRange});
  EXPECT_TRUE(memory.Open({1}, kBase + kRange, kRange).ok());
  for (const std::uint64_t base : {kBase - kRange, kBase + kRange + kChunk, kBase + 3 * kRange}) {
    EXPECT_TRUE(absl::IsInvalidArgument(memory.Open({1}, base, kRange).status())) << base;
  }
}

TEST_F(MappedBackingTest, ARangeIsWholeChunks) {
  EXPECT_TRUE(
      absl::IsInvalidArgument(MappedBacking::Open(*device_, *pool_, kBase, kRange + 1).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(MappedBacking::Open(*device_, *pool_, kBase + 1, kRange).status()));
}

TEST_F(MappedBackingTest, TellsWhatIsNewAndGivesBackWhatIsUnused) {
  const auto backing = *MappedBacking::Open(*device_, *pool_, kBase, kRange);
  using Extents = std::vector<memory::Extent>;
  EXPECT_EQ(*backing->Back(Extents{{0, 512}, {kChunk - 512, kChunk + 512}}),
            (Extents{{0, 2 * kChunk}}));
  EXPECT_EQ(*backing->Back(Extents{{512, 1024}, {5 * kChunk, 5 * kChunk + 1}}),
            (Extents{{5 * kChunk, 6 * kChunk}}));
  EXPECT_EQ(pool_->free_chunks(), 5u);
  memory::ExtentSet live;
  live.Add({0, 512});
  ASSERT_TRUE(backing->Release({512, 2 * kChunk}, live).ok());
  EXPECT_EQ(pool_->free_chunks(), 6u) << "the first chunk is in use";
  ASSERT_TRUE(backing->Release({0, kRange}, {}).ok());
  EXPECT_TRUE(backing->empty());
  EXPECT_EQ(pool_->free_chunks(), 8u);
}

TEST_F(MappedBackingTest, MapsWhatIsNeededOnce) {
  const auto backing = *MappedBacking::Open(*device_, *pool_, kBase, kRange);
  const memory::Extent whole{0, 3 * kChunk};
  ASSERT_TRUE(backing->Back({&whole, 1}).ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 0u);
  ASSERT_TRUE(backing->Map({kChunk, kChunk + 1}).ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 1u);
  ASSERT_TRUE(backing->Map({kChunk, 3 * kChunk}).ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 2u);
  ASSERT_TRUE(backing->Release(whole, {}).ok()) << "a chunk was never mapped";
  EXPECT_EQ(cuda_.mapped_chunks(), 0u);
  EXPECT_EQ(pool_->free_chunks(), 8u);
}

TEST_F(MappedBackingTest, HasAllOrNothing) {
  const auto backing = *MappedBacking::Open(*device_, *pool_, kBase, kRange);
  const memory::Extent too_much{0, 9 * kChunk};
  EXPECT_TRUE(absl::IsResourceExhausted(backing->Back({&too_much, 1}).status()));
  EXPECT_EQ(cuda_.mapped_chunks(), 0u);
  EXPECT_EQ(pool_->free_chunks(), 8u);
}

TEST_F(MappedBackingTest, TheGpuKnowsTheClientsAddresses) {
  const auto backing = *MappedBacking::Open(*device_, *pool_, kBase, kRange);
  EXPECT_FALSE(backing->is_translating());
  EXPECT_EQ(backing->AddressOf(5), kBase + 5);
}

}  // namespace
}  // namespace torpor::executor
