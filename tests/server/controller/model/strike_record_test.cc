#include "server/controller/model/strike_record.h"

#include <gtest/gtest.h>

namespace torpor::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr TimePoint kStart{std::chrono::hours(1)};

TEST(StrikeRecord, TheFirstFaultCostsNothing) {
  StrikeRecord record;
  EXPECT_EQ(record.strikes(kStart), 0u);
  record.OnFault(kStart);
  EXPECT_EQ(record.strikes(kStart), 1u);
  EXPECT_LE(record.refused_until(), kStart);
}

TEST(StrikeRecord, EachFurtherOneTakesTheGpusAwayForTwiceAsLong) {
  StrikeRecord record;
  TimePoint now = kStart;
  record.OnFault(now);
  for (const int pause : {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}) {
    now += seconds(1);
    record.OnFault(now);
    EXPECT_EQ(record.refused_until() - now, seconds(pause));
    now = record.refused_until();
  }
}

TEST(StrikeRecord, TimeForgivesOneAfterTheOther) {
  StrikeRecord record;
  for (int i = 0; i < 3; ++i) record.OnFault(kStart);
  const Duration once = StrikeRecord::kForgivenAfter;
  EXPECT_EQ(record.strikes(kStart + once - milliseconds(1)), 3u);
  EXPECT_EQ(record.strikes(kStart + once), 2u);
  EXPECT_EQ(record.strikes(kStart + 2 * once), 1u);
  EXPECT_EQ(record.strikes(kStart + 20 * once), 0u);
  record.OnFault(kStart + 2 * once);
  EXPECT_EQ(record.strikes(kStart + 2 * once), 2u);
  EXPECT_EQ(record.refused_until(), kStart + 2 * once + seconds(1));
  record.OnFault(kStart + 20 * once);
  EXPECT_EQ(record.strikes(kStart + 20 * once), 1u);
}

TEST(StrikeRecord, ACrashCountsIfAnotherWasNotLongAgo) {
  StrikeRecord record;
  EXPECT_FALSE(record.OnCrash(kStart));
  const TimePoint late = kStart + StrikeRecord::kCrashWindow + seconds(1);
  EXPECT_FALSE(record.OnCrash(late));
  EXPECT_EQ(record.strikes(late), 0u);
  EXPECT_TRUE(record.OnCrash(late + minutes(1)));
  EXPECT_EQ(record.strikes(late + minutes(1)), 1u);
  EXPECT_TRUE(record.OnCrash(late + minutes(2)));
  EXPECT_EQ(record.refused_until(), late + minutes(2) + seconds(1));
}

}  // namespace
}  // namespace torpor::server
