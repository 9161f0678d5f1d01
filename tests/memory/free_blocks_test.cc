#include "memory/free_blocks.h"

#include <gtest/gtest.h>

#include <vector>

namespace torpor::memory {
namespace {

TEST(FreeBlocks, NeighboursCoalesceButNotAcrossTheBoundary) {
  FreeBlocks blocks(100);
  blocks.Add({0, 50});
  blocks.Add({100, 20});
  EXPECT_EQ(blocks.Add({50, 50}), (Block{0, 100}));
  EXPECT_EQ(blocks.blocks(), (std::vector<Block>{{0, 100}, {100, 20}}));
}

TEST(FreeBlocks, TakesTheSmallestThatFits) {
  FreeBlocks blocks(0);
  blocks.Add({0, 100});
  blocks.Add({200, 40});
  blocks.Add({300, 60});
  EXPECT_EQ(blocks.Take(50, 1), (Block{300, 50}));
  EXPECT_EQ(blocks.Take(8, 64), (Block{0, 8}));
  EXPECT_FALSE(blocks.Take(93, 1));
}

TEST(FreeBlocks, TakesAnExactPiece) {
  FreeBlocks blocks(0);
  blocks.Add({100, 100});
  EXPECT_FALSE(blocks.TakeAt({90, 20}));
  EXPECT_FALSE(blocks.TakeAt({190, 20}));
  EXPECT_TRUE(blocks.TakeAt({120, 30}));
  EXPECT_EQ(blocks.blocks(), (std::vector<Block>{{100, 20}, {150, 50}}));
  EXPECT_FALSE(blocks.TakeAt({110, 20}));
  EXPECT_EQ(blocks.smallest(), (Block{100, 20}));
  EXPECT_EQ(blocks.largest_bytes(), 50u);
}

}  // namespace
}  // namespace torpor::memory
