#include "memory/buddy_tree.h"

#include <gtest/gtest.h>

#include <bit>
#include <iterator>
#include <map>
#include <random>
#include <vector>

namespace torpor::memory {
namespace {

TEST(BuddyTree, SplitsAndCoalesces) {
  BuddyTree tree(16);
  EXPECT_EQ(tree.largest_order(), 5);
  EXPECT_EQ(tree.Take(4, 1), 0u);
  EXPECT_EQ(tree.largest_order(), 4);
  EXPECT_EQ(tree.Take(8, 1), 8u);
  EXPECT_EQ(tree.largest_order(), 3);
  EXPECT_FALSE(tree.Take(8, 1));
  tree.Release(0, 4);
  EXPECT_EQ(tree.largest_order(), 4);
  tree.Release(8, 8);
  EXPECT_EQ(tree.largest_order(), 5);
}

TEST(BuddyTree, ABlockEndsWhereItEndsAndNotAtAPowerOfTwo) {
  BuddyTree tree(16);
  EXPECT_EQ(tree.Take(9, 1), 0u);
  EXPECT_EQ(tree.Take(4, 1), 12u);
  EXPECT_EQ(tree.Take(2, 1), 10u);
  EXPECT_EQ(tree.Take(1, 1), 9u);
  EXPECT_EQ(tree.largest_order(), 0);
  tree.Release(0, 9);
  EXPECT_EQ(tree.largest_order(), 4);
}

TEST(BuddyTree, PrefersTheSmallestBuddyThatHoldsABlock) {
  BuddyTree tree(16);
  EXPECT_EQ(tree.Take(4, 1), 0u);
  EXPECT_EQ(tree.Take(2, 1), 4u);
  EXPECT_EQ(tree.Take(2, 1), 6u);
  tree.Release(0, 4);
  tree.Release(6, 2);
  EXPECT_EQ(tree.Take(2, 1), 6u);
}

TEST(BuddyTree, AlignsTo) {
  BuddyTree tree(16);
  EXPECT_EQ(tree.Take(1, 1), 0u);
  EXPECT_EQ(tree.Take(1, 8), 8u);
  EXPECT_FALSE(tree.Take(1, 8));
  EXPECT_FALSE(tree.Take(1, 32));
}

TEST(BuddyTree, TakesAnExactPlaceIfAllOfItIsFree) {
  BuddyTree tree(16);
  EXPECT_TRUE(tree.TakeAt(4, 3));
  EXPECT_FALSE(tree.TakeAt(6, 2));
  EXPECT_FALSE(tree.TakeAt(0, 16));
  EXPECT_TRUE(tree.TakeAt(7, 1));
  EXPECT_FALSE(tree.TakeAt(15, 2));
  EXPECT_FALSE(tree.TakeAt(17, 1));
  EXPECT_FALSE(tree.TakeAt(0, ~0u));
  tree.Release(4, 3);
  EXPECT_TRUE(tree.TakeAt(4, 2));
}

std::uint8_t LargestOrderOf(const std::vector<bool>& taken) {
  const auto units = static_cast<std::uint32_t>(taken.size());
  for (std::uint32_t span = units; span > 0; span /= 2) {
    for (std::uint32_t begin = 0; begin < units; begin += span) {
      bool is_free = true;
      for (std::uint32_t unit = begin; unit < begin + span; ++unit) {
        is_free = is_free && !taken[unit];
      }
      if (is_free) return static_cast<std::uint8_t>(std::bit_width(span));
    }
  }
  return 0;
}

TEST(BuddyTree, AgreesWithANaiveModel) {
  constexpr std::uint32_t kUnits = 256;
  std::mt19937 random(3);
  BuddyTree tree(kUnits);
  std::vector<bool> taken(kUnits);
  std::map<std::uint32_t, std::uint32_t> live;
  for (int step = 0; step < 5000; ++step) {
    const std::uint32_t units = 1 + static_cast<std::uint32_t>(random()) % 40;
    const std::uint32_t alignment = 1u << random() % 5;
    if (random() % 2 == 0) {
      const std::uint8_t before = tree.largest_order();
      const auto begin = tree.Take(units, alignment);
      ASSERT_EQ(begin.has_value(), before >= BuddyTree::OrderFor(units, alignment));
      if (!begin) continue;
      ASSERT_EQ(*begin % alignment, 0u);
      for (std::uint32_t unit = *begin; unit < *begin + units; ++unit) {
        ASSERT_FALSE(taken[unit]);
        taken[unit] = true;
      }
      live[*begin] = units;
    } else if (!live.empty()) {
      const auto some =
          std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      tree.Release(some->first, some->second);
      for (std::uint32_t i = 0; i < some->second; ++i) taken[some->first + i] = false;
      live.erase(some);
    }
    ASSERT_EQ(tree.largest_order(), LargestOrderOf(taken)) << "step " << step;
  }
}

}  // namespace
}  // namespace torpor::memory
