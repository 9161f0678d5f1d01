#include "client_shim/cudart/memory/pool_memory.h"

#include <gtest/gtest.h>

namespace torpor::shim {
namespace {

constexpr std::uint64_t kSegment = 0x10000;
constexpr std::uint64_t kSegmentBytes = 16 * PoolMemory::kAlignment;
constexpr std::uint64_t kUnit = PoolMemory::kAlignment;
constexpr std::uint64_t kStream = 7;
constexpr std::uint64_t kOther = 8;

class FakePoint final : public FreePoint {
 public:
  explicit FakePoint(std::uint64_t stream) : FreePoint(stream) {}
  bool IsPassed() const override { return is_passed; }
  bool is_passed = false;
};

class PoolMemoryTest : public testing::Test {
 protected:
  void SetUp() override { memory_.AddSegment(kSegment, kSegmentBytes); }
  std::shared_ptr<FakePoint> FreeLater(std::uint64_t address) {
    auto point = std::make_shared<FakePoint>(kStream);
    EXPECT_TRUE(memory_.Free(address, point));
    return point;
  }

  PoolMemory memory_;
};

TEST_F(PoolMemoryTest, BlocksAreRoundedAndDoNotMeet) {
  const std::uint64_t first = memory_.Take(1, kStream);
  const std::uint64_t second = memory_.Take(kUnit + 1, kStream);
  EXPECT_EQ(first, kSegment);
  EXPECT_EQ(second, kSegment + kUnit);
  EXPECT_EQ(memory_.used().now, 3 * kUnit);
  EXPECT_EQ(memory_.reserved().now, kSegmentBytes);
  EXPECT_EQ(memory_.Take(kSegmentBytes - 2 * kUnit, kStream), 0u);
}

TEST_F(PoolMemoryTest, TheSmallestBlockThatFitsIsTaken) {
  const std::uint64_t large = memory_.Take(4 * kUnit, kStream);
  memory_.Take(kUnit, kStream);
  const std::uint64_t small = memory_.Take(2 * kUnit, kStream);
  memory_.Take(kUnit, kStream);
  EXPECT_TRUE(memory_.Free(large, nullptr));
  EXPECT_TRUE(memory_.Free(small, nullptr));
  EXPECT_EQ(memory_.Take(2 * kUnit, kStream), small);
}

TEST_F(PoolMemoryTest, OnlyTheFreeingStreamReusesBeforeItsFreeIsPassed) {
  const std::uint64_t whole = memory_.Take(kSegmentBytes, kStream);
  const auto point = FreeLater(whole);
  EXPECT_EQ(memory_.Take(kUnit, kOther), 0u);
  EXPECT_EQ(memory_.Take(kUnit, kStream), whole);
  EXPECT_EQ(memory_.Take(kUnit, kOther), 0u) << "the rest still waits";
  point->is_passed = true;
  EXPECT_EQ(memory_.Take(kUnit, kOther), whole + kUnit);
}

TEST_F(PoolMemoryTest, WhoCannotWaitIsToldWhatToWaitFor) {
  const std::uint64_t whole = memory_.Take(kSegmentBytes, kStream);
  const auto point = FreeLater(whole);
  FreePointPtr after;
  EXPECT_EQ(memory_.TakeAfter(kUnit, after), whole);
  EXPECT_EQ(after, point);
}

TEST_F(PoolMemoryTest, NeighboursJoinWhenNobodyWaitsForThem) {
  const std::uint64_t first = memory_.Take(4 * kUnit, kStream);
  const std::uint64_t second = memory_.Take(4 * kUnit, kStream);
  const std::uint64_t third = memory_.Take(8 * kUnit, kStream);
  const auto point = FreeLater(second);
  EXPECT_TRUE(memory_.Free(first, nullptr));
  EXPECT_TRUE(memory_.Free(third, nullptr));
  EXPECT_EQ(memory_.Take(kSegmentBytes, kOther), 0u);
  point->is_passed = true;
  EXPECT_EQ(memory_.Take(kSegmentBytes, kOther), first);
}

TEST_F(PoolMemoryTest, OnlyUnusedSegmentsAreTakenOut) {
  constexpr std::uint64_t kSecond = kSegment + kSegmentBytes;  // adjacent, but never joined
  memory_.AddSegment(kSecond, kSegmentBytes);
  const std::uint64_t first = memory_.Take(kSegmentBytes, kStream);
  const std::uint64_t second = memory_.Take(kSegmentBytes, kStream);
  const auto point = FreeLater(first);
  EXPECT_TRUE(memory_.Free(second, nullptr));
  EXPECT_EQ(memory_.Take(2 * kSegmentBytes, kStream), 0u);
  EXPECT_TRUE(memory_.TakeOutUnused(2 * kSegmentBytes).empty()) << "so much is to be kept";
  EXPECT_EQ(memory_.TakeOutUnused(0), (std::vector<std::uint64_t>{second}));
  point->is_passed = true;
  EXPECT_EQ(memory_.TakeOutUnused(0), (std::vector<std::uint64_t>{first}));
  EXPECT_EQ(memory_.reserved().now, 0u);
  EXPECT_EQ(memory_.reserved().high, 2 * kSegmentBytes);
  EXPECT_EQ(memory_.used().high, 2 * kSegmentBytes);
  memory_.used().ResetHigh();
  EXPECT_EQ(memory_.used().high, 0u);
}

TEST_F(PoolMemoryTest, WhatIsNoBlockInUseIsNotFreed) {
  const std::uint64_t block = memory_.Take(2 * kUnit, kStream);
  EXPECT_FALSE(memory_.Free(block + kUnit, nullptr));
  EXPECT_FALSE(memory_.Free(block + 2 * kUnit, nullptr));
  EXPECT_TRUE(memory_.Free(block, nullptr));
  EXPECT_FALSE(memory_.Free(block, nullptr));
}

TEST_F(PoolMemoryTest, RoomEndsWithTheBlock) {
  const std::uint64_t block = memory_.Take(2 * kUnit, kStream);
  std::uint64_t room = 0;
  ASSERT_TRUE(memory_.FindRoom(block + 1, room));
  EXPECT_EQ(room, 2 * kUnit - 1);
  ASSERT_TRUE(memory_.FindRoom(block + 2 * kUnit, room));
  EXPECT_EQ(room, 0u);
  EXPECT_FALSE(memory_.FindRoom(kSegment - 1, room));
  EXPECT_FALSE(memory_.FindRoom(kSegment + kSegmentBytes, room));
}

}  // namespace
}  // namespace torpor::shim
