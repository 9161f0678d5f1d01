#include "base/poll_timeout.h"

#include <gtest/gtest.h>

namespace torpor {
namespace {

constexpr TimePoint kNow{std::chrono::hours(5)};

TEST(PollTimeout, IsRoundedUpSoThatNobodyLooksTooEarly) {
  EXPECT_EQ(PollTimeout(kNow + std::chrono::milliseconds(7), kNow), 7);
  EXPECT_EQ(PollTimeout(kNow + std::chrono::microseconds(7001), kNow), 8);
}

TEST(PollTimeout, OfAPastTimeIsNone) {
  EXPECT_EQ(PollTimeout(kNow, kNow), 0);
  EXPECT_EQ(PollTimeout(kNow - std::chrono::hours(1), kNow), 0);
}

TEST(PollTimeout, IsAMinuteAtMostUnlessForEver) {
  EXPECT_EQ(PollTimeout(kNow + std::chrono::hours(1000), kNow), 60'000);
  EXPECT_EQ(PollTimeout(TimePoint::max(), kNow), -1);
}

}  // namespace
}  // namespace torpor
