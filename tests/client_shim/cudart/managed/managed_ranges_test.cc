#include "client_shim/cudart/managed/managed_ranges.h"

#include <gtest/gtest.h>

namespace torpor::shim {
namespace {

constexpr std::uint64_t kBegin = 0x1000;
constexpr std::uint64_t kBytes = 0x100;

void MostlyRead(ManagedAdvice& advice) { advice.read_mostly = true; }

class ManagedRangesTest : public testing::Test {
 protected:
  void SetUp() override { ranges_.Add(kBegin, kBytes); }
  std::vector<bool> MostlyReadIn(std::uint64_t begin, std::uint64_t bytes) const {
    std::vector<bool> parts;
    for (const ManagedAdvice& advice : ranges_.AdviceOf(begin, bytes))
      parts.push_back(advice.read_mostly);
    return parts;
  }

  ManagedRanges ranges_;
};

TEST_F(ManagedRangesTest, ARangeLiesInOneAllocation) {
  ranges_.Add(kBegin + kBytes, kBytes);
  EXPECT_TRUE(ranges_.Contains(kBegin, kBytes));
  EXPECT_TRUE(ranges_.Contains(kBegin + kBytes - 1));
  EXPECT_FALSE(ranges_.Contains(kBegin + 1, kBytes));
  EXPECT_FALSE(ranges_.Contains(kBegin - 1));
  EXPECT_FALSE(ranges_.Contains(kBegin, ~std::uint64_t{0}));
  std::uint64_t bytes = 0;
  EXPECT_TRUE(ranges_.BeginsAt(kBegin, bytes));
  EXPECT_EQ(bytes, kBytes);
  EXPECT_FALSE(ranges_.BeginsAt(kBegin + 1, bytes));
}

TEST_F(ManagedRangesTest, AdviceIsKeptForEachPart) {
  ASSERT_TRUE(ranges_.Advise(kBegin + 0x10, 0x20, MostlyRead));
  EXPECT_EQ(MostlyReadIn(kBegin, kBytes), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(MostlyReadIn(kBegin + 0x10, 0x20), (std::vector<bool>{true}));
  EXPECT_EQ(MostlyReadIn(kBegin + 0x2f, 2), (std::vector<bool>{true, false}));
  ASSERT_TRUE(ranges_.Advise(kBegin, kBytes, MostlyRead));
  EXPECT_EQ(MostlyReadIn(kBegin, kBytes), (std::vector<bool>{true, true, true}));
}

TEST_F(ManagedRangesTest, WhatIsNotAllocatedHasNoAdvice) {
  EXPECT_FALSE(ranges_.Advise(kBegin, kBytes + 1, MostlyRead));
  EXPECT_TRUE(ranges_.AdviceOf(kBegin - 1, 1).empty());
  EXPECT_TRUE(ranges_.Remove(kBegin));
  EXPECT_FALSE(ranges_.Remove(kBegin));
  EXPECT_TRUE(ranges_.AdviceOf(kBegin, 1).empty());
}

}  // namespace
}  // namespace torpor::shim
