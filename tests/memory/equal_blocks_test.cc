#include "memory/equal_blocks.h"

#include <gtest/gtest.h>

namespace torpor::memory {
namespace {

constexpr SessionId kImage{1};
constexpr SessionId kOther{2};

// A content of which every sixteenth stands for others.
constexpr std::uint64_t ContentOf(std::size_t number) { return (number << 8) + 4; }

// Blocks from `first` on with the contents from `content` on.
std::vector<BlockContent> Blocks(std::size_t first, std::size_t count, std::size_t content) {
  std::vector<BlockContent> blocks;
  for (std::size_t i = 0; i < count; ++i) blocks.push_back({first + i, ContentOf(content + i)});
  return blocks;
}

TEST(EqualBlocks, ARunEndsWhereContentsDifferOrBlocksAreMissing) {
  std::vector<BlockContent> blocks = Blocks(100, 50, 0);
  const std::vector<BlockContent> others = Blocks(7, 40, 5);
  EXPECT_EQ(RunAround(blocks, 120, others, 22), (EqualRun{105, 7, 40}));
  blocks[10].content = 9;
  EXPECT_EQ(RunAround(blocks, 120, others, 22), (EqualRun{111, 13, 34}));
  blocks.erase(blocks.begin() + 40);
  EXPECT_EQ(RunAround(blocks, 120, others, 22), (EqualRun{111, 13, 29}));
  EXPECT_EQ(RunAround(blocks, 120, others, 21).count, 0u);
  EXPECT_EQ(RunAround(blocks, 7, others, 21).count, 0u) << "no such block";
}

TEST(EqualBlocks, AnImageFindsItsTwin) {
  EqualBlocks equal;
  equal.SetBlocks(kImage, Blocks(0, 64, 1));
  const std::vector<BlockContent> blocks = Blocks(500, 64, 9);
  EXPECT_FALSE(equal.FindTwin(kImage, blocks)) << "the image itself";
  const auto twin = equal.FindTwin(kOther, blocks);
  ASSERT_TRUE(twin);
  EXPECT_EQ(twin->session, kImage);
  EXPECT_EQ(twin->other - twin->block, std::size_t{8} - 500);
  EXPECT_EQ(RunAround(blocks, twin->block, Blocks(0, 64, 1), twin->other).count, 56u);
  EXPECT_FALSE(equal.FindTwin(kOther, Blocks(500, 64, 1000)));
}

TEST(EqualBlocks, WhatATwinHasLostIsForgotten) {
  EqualBlocks equal;
  equal.SetBlocks(kImage, Blocks(0, 32, 0));
  const std::vector<BlockContent> blocks = Blocks(0, 32, 0);
  int found = 0;
  while (const auto twin = equal.FindTwin(kOther, blocks)) {
    equal.Forget(*twin);
    ASSERT_LT(++found, 3);
  }
  EXPECT_EQ(found, 2) << "one block in sixteen is noted";
  equal.SetBlocks(kImage, Blocks(0, 32, 0));
  equal.Remove(kImage);
  EXPECT_FALSE(equal.FindTwin(kOther, blocks));
}

TEST(EqualBlocks, RunsOfEqualPlacesAreFound) {
  EqualBlocks equal;
  for (std::size_t i = 0; i < 100; ++i) equal.SetPlace(1000 + i, ContentOf(i));
  EXPECT_EQ(equal.FindPlaces(Blocks(3, 90, 5)), (std::vector<EqualRun>{{3, 1005, 90}}));
  EXPECT_TRUE(equal.FindPlaces(Blocks(3, kLeastEqualBlocks - 1, 5)).empty()) << "too short";
  for (std::size_t i = 40; i < 50; ++i) equal.RemovePlace(1000 + i);
  EXPECT_EQ(equal.FindPlaces(Blocks(0, 100, 0)),
            (std::vector<EqualRun>{{0, 1000, 40}, {50, 1050, 50}}));
}

TEST(EqualBlocks, APlaceGetsOtherContents) {
  EqualBlocks equal;
  for (std::size_t i = 0; i < 32; ++i) equal.SetPlace(i, ContentOf(i));
  for (std::size_t i = 0; i < 32; ++i) equal.SetPlace(i, ContentOf(100 + i));
  EXPECT_TRUE(equal.FindPlaces(Blocks(0, 32, 0)).empty());
  EXPECT_EQ(equal.FindPlaces(Blocks(9, 32, 100)), (std::vector<EqualRun>{{9, 0, 32}}));
}

}  // namespace
}  // namespace torpor::memory
