#include "memory/swap_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace torpor::memory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SwapPlanner, OrdersByFirstTouchThenUploadedThenTheRest) {
  const std::vector<Extent> allocations = {{0, 10}, {10, 20}, {30, 40}, {50, 60}, {70, 80}};
  ExtentSet uploaded;
  uploaded.Add({55, 56});
  const std::vector<Bytes> touched = {70, 999, 30, 70, 75};
  EXPECT_THAT(
      OrderForSwapIn(allocations, touched, uploaded),
      ElementsAre(Extent{70, 80}, Extent{30, 40}, Extent{50, 60}, Extent{0, 10}, Extent{10, 20}));
}

TEST(SwapPlanner, WithoutKnowledgeTheOrderIsThatOfAddresses) {
  const std::vector<Extent> allocations = {{0, 10}, {10, 20}};
  EXPECT_THAT(OrderForSwapIn(allocations, {}, {}), ElementsAre(Extent{0, 10}, Extent{10, 20}));
  EXPECT_THAT(OrderForSwapIn({}, std::vector<Bytes>{1}, {}), IsEmpty());
}

TEST(SwapPlanner, PacksSmallExtentsAndJoinsNeighbours) {
  const std::vector<Extent> extents = {{0, 4}, {4, 8}, {20, 24}, {12, 16}, {16, 20}};
  EXPECT_THAT(GroupBySize(extents, 10),
              ElementsAre(ElementsAre(Extent{0, 8}, Extent{20, 24}), ElementsAre(Extent{12, 20})));
}

TEST(SwapPlanner, CopiesOfAGroupAscend) {
  EXPECT_THAT(GroupBySize(std::vector<Extent>{{20, 24}, {4, 8}, {0, 4}, {8, 12}}, 12),
              ElementsAre(ElementsAre(Extent{0, 8}, Extent{20, 24}), ElementsAre(Extent{8, 12})));
}

TEST(SwapPlanner, CutsLargeExtentsOnlyAndAtMultiplesOfTheSize) {
  EXPECT_THAT(GroupBySize(std::vector<Extent>{{0, 5}, {104, 125}}, 10),
              ElementsAre(ElementsAre(Extent{0, 5}, Extent{104, 110}),
                          ElementsAre(Extent{110, 120}), ElementsAre(Extent{120, 125})));
  EXPECT_THAT(GroupBySize(std::vector<Extent>{{0, 9}, {100, 110}}, 10),
              ElementsAre(ElementsAre(Extent{0, 9}, Extent{100, 110})));
}

TEST(SwapPlanner, GroupsEachExtentByItself) {
  EXPECT_THAT(GroupEach(std::vector<Extent>{{8, 16}, {0, 8}, {4, 4}}),
              ElementsAre(ElementsAre(Extent{8, 16}), ElementsAre(Extent{0, 8})));
}

TEST(SwapPlanner, GroupsHoldEveryByteOnceInOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Extent> extents;
    Bytes total = 0;
    for (Bytes at = 0; extents.size() < 20; at += 40) {
      extents.push_back({at, at + 1 + random() % 39});
      total += extents.back().bytes();
    }
    std::ranges::shuffle(extents, random);
    const Bytes group_bytes = 1 + random() % 60;
    const std::vector<SwapGroup> groups = GroupBySize(extents, group_bytes);
    ExtentSet covered;
    Bytes copied = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      Bytes bytes = 0;
      for (const Extent& piece : groups[i]) {
        bytes += piece.bytes();
        covered.Add(piece);
      }
      EXPECT_TRUE(bytes >= group_bytes || i + 1 == groups.size());
      EXPECT_LT(bytes, 2 * group_bytes);
      copied += bytes;
    }
    EXPECT_EQ(copied, total);
    for (const Extent& extent : extents) EXPECT_TRUE(covered.Contains(extent));
  }
}

}  // namespace
}  // namespace torpor::memory
