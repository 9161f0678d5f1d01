#include "client_shim/core/commands/held_time.h"

#include <gtest/gtest.h>

namespace torpor::shim {
namespace {

using std::chrono::milliseconds;

HeldTime::Time At(int ms) { return HeldTime::Time(milliseconds(ms)); }

TEST(HeldTimeTest, OnlyTheLastPeriodCounts) {
  HeldTime held;
  EXPECT_EQ(held.RecentShare(At(5000)), 0);
  held.Begin(At(10'000));
  EXPECT_DOUBLE_EQ(held.RecentShare(At(10'250)), 0.25) << "it is still held";
  EXPECT_DOUBLE_EQ(held.RecentShare(At(12'000)), 1);
  held.End(At(12'000));
  EXPECT_DOUBLE_EQ(held.RecentShare(At(12'600)), 0.4);
  EXPECT_DOUBLE_EQ(held.RecentShare(At(13'500)), 0);
}

TEST(HeldTimeTest, TimesAddUp) {
  HeldTime held;
  for (int ms = 1000; ms < 4000; ms += 10) {
    held.Begin(At(ms));
    held.End(At(ms + 3));
  }
  EXPECT_DOUBLE_EQ(held.RecentShare(At(4000)), 0.3);
  held.Begin(At(4000));
  EXPECT_DOUBLE_EQ(held.RecentShare(At(4500)), 0.65);
}

TEST(HeldTimeTest, AnEndWithoutABeginIsNothing) {
  HeldTime held;
  held.End(At(2000));
  EXPECT_EQ(held.RecentShare(At(2000)), 0);
}

}  // namespace
}  // namespace torpor::shim
