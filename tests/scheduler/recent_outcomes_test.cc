#include "scheduler/recent_outcomes.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace torpor::scheduler {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr TimePoint At(Duration since) { return TimePoint(since); }

TEST(RecentOutcomesTest, CountsTheLastHour) {
  RecentOutcomes outcomes;
  for (int minute = 0; minute < 300; ++minute) {
    const TimePoint now = At(minutes(minute));
    outcomes.Forget(now);
    outcomes.Add(minute % 2 == 0, now);
    // Of the hour all, and of the ten minutes before it some.
    EXPECT_GE(outcomes.finished(), static_cast<std::uint64_t>(std::min(minute + 1, 60)));
    EXPECT_LE(outcomes.finished(), 70u);
    EXPECT_NEAR(static_cast<double>(outcomes.in_time()),
                static_cast<double>(outcomes.finished()) / 2, 1);
  }
}

TEST(RecentOutcomesTest, SaysWhenThereIsSomethingToForget) {
  RecentOutcomes outcomes;
  EXPECT_FALSE(outcomes.next_end());
  outcomes.Add(true, At(seconds(0)));
  outcomes.Add(false, At(minutes(30)));
  const TimePoint end = outcomes.next_end().value();
  EXPECT_GE(end, At(hours(1)));
  outcomes.Forget(end - seconds(1));
  EXPECT_EQ(outcomes.finished(), 2u);
  outcomes.Forget(end);
  EXPECT_EQ(outcomes.finished(), 1u);
  EXPECT_EQ(outcomes.in_time(), 0u);
  outcomes.Forget(outcomes.next_end().value());
  EXPECT_EQ(outcomes.finished(), 0u);
  EXPECT_FALSE(outcomes.next_end());
}

TEST(RecentOutcomesTest, ForgetsEverything) {
  RecentOutcomes outcomes;
  outcomes.Add(true, At(seconds(1)));
  outcomes.Clear();
  EXPECT_EQ(outcomes.finished(), 0u);
  EXPECT_EQ(outcomes.in_time(), 0u);
  EXPECT_FALSE(outcomes.next_end());
}

}  // namespace
}  // namespace torpor::scheduler
