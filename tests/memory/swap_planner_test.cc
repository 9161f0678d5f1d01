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
  const std::vector<Extent> extents = {{0, 4}, {4, 8}, {8, 12}, {16, 20}, {12, 16}, {20, 24}};
  EXPECT_THAT(GroupBySize(extents, 10),
              ElementsAre(ElementsAre(Extent{0, 12}), ElementsAre(Extent{12, 24})));
}

TEST(SwapPlanner, GroupsInPiecesAreLarger) {
  EXPECT_THAT(GroupBySize(std::vector<Extent>{{0, 8}, {20, 28}, {40, 48}, {28, 40}, {60, 70}}, 10),
              ElementsAre(ElementsAre(Extent{0, 8}, Extent{20, 48}), ElementsAre(Extent{60, 70})));
}

TEST(SwapPlanner, ButNotWithoutEnd) {
  std::vector<Extent> extents;
  for (Bytes i = 0; i < 20; ++i) extents.push_back({i * 10, i * 10 + 4});
  const std::vector<SwapGroup> groups = GroupBySize(extents, 10);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].size(), 10u) << "40 bytes";
}

TEST(SwapPlanner, CopiesOfAGroupAscend) {
  EXPECT_THAT(GroupBySize(std::vector<Extent>{{20, 24}, {4, 8}, {0, 4}, {8, 12}, {12, 20}}, 12),
              ElementsAre(ElementsAre(Extent{0, 24})));
  EXPECT_THAT(GroupBySize(std::vector<Extent>{{20, 30}, {4, 8}, {0, 4}, {8, 12}}, 12),
              ElementsAre(ElementsAre(Extent{0, 12}, Extent{20, 30})));
}

TEST(SwapPlanner, CutsLargeExtentsOnlyAndAtMultiplesOfTheSize) {
  EXPECT_THAT(
      GroupBySize(std::vector<Extent>{{104, 125}, {0, 5}}, 10),
      ElementsAre(ElementsAre(Extent{104, 120}), ElementsAre(Extent{0, 5}, Extent{120, 125})));
  EXPECT_THAT(GroupBySize(std::vector<Extent>{{0, 9}, {9, 19}}, 10),
              ElementsAre(ElementsAre(Extent{0, 19})));
}

TEST(SwapPlanner, LaterGroupsAreLarger) {
  std::vector<Bytes> sizes;
  for (const SwapGroup& group : GroupBySize(std::vector<Extent>{{0, 220}}, 10)) {
    ASSERT_EQ(group.size(), 1u);
    sizes.push_back(group[0].bytes());
  }
  EXPECT_THAT(sizes, ElementsAre(10, 10, 10, 10, 20, 20, 20, 20, 40, 40, 20));
}

TEST(SwapPlanner, GroupsBeginSmallForTheFirstKernelsSake) {
  std::vector<Bytes> sizes;
  for (const SwapGroup& group : GroupBySize(std::vector<Extent>{{0, 64 * kMiB}}, 16 * kMiB)) {
    ASSERT_EQ(group.size(), 1u);
    sizes.push_back(group.front().bytes() / kMiB);
  }
  // Cut at multiples of each group's size.
  EXPECT_EQ(sizes, (std::vector<Bytes>{2, 6, 8, 16, 16, 16}));
  const std::vector<Extent> scattered = {{0, kMiB}, {8 * kMiB, 9 * kMiB}, {4 * kMiB, 5 * kMiB}};
  EXPECT_EQ(GroupBySize(scattered, 16 * kMiB).front().size(), 2u) << "pieces do not matter yet";
}

TEST(SwapPlanner, GroupsAllExtentsTogether) {
  EXPECT_THAT(GroupAll(std::vector<Extent>{{8, 16}, {0, 4}, {4, 8}, {20, 30}}),
              ElementsAre(ElementsAre(Extent{0, 16}, Extent{20, 30})));
  EXPECT_THAT(GroupAll({}), IsEmpty());
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
      const Bytes size = group_bytes << std::min<std::size_t>(i / kGroupsOfASize, 2);
      EXPECT_TRUE(bytes >= size * std::min<std::size_t>(groups[i].size(), 4) ||
                  i + 1 == groups.size());
      EXPECT_LT(bytes, 5 * size);
      copied += bytes;
    }
    EXPECT_EQ(copied, total);
    for (const Extent& extent : extents) EXPECT_TRUE(covered.Contains(extent));
  }
}

}  // namespace
}  // namespace torpor::memory
