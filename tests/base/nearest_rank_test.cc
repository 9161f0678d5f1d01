#include "base/nearest_rank.h"

#include <gtest/gtest.h>

namespace torpor {
namespace {

TEST(NearestRankTest, IsTheLeastThatTheShareDoesNotExceed) {
  EXPECT_EQ(NearestRank(4, 0.5), 1u);
  EXPECT_EQ(NearestRank(4, 0.51), 2u);
  EXPECT_EQ(NearestRank(1, 0.5), 0u);
}

TEST(NearestRankTest, EndsAreTheLeastAndTheGreatest) {
  EXPECT_EQ(NearestRank(7, 0), 0u);
  EXPECT_EQ(NearestRank(7, 1), 6u);
}

TEST(NearestRankTest, RoundingDoesNotDecide) {
  for (std::size_t hundreds = 1; hundreds <= 50; ++hundreds) {
    for (std::size_t percent = 1; percent <= 100; ++percent) {
      EXPECT_EQ(NearestRank(100 * hundreds, static_cast<double>(percent) / 100),
                percent * hundreds - 1);
    }
  }
}

}  // namespace
}  // namespace torpor
