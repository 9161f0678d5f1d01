#include "tests/chaos/delays.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace torpor::chaos {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TimePoint At(int ms) { return TimePoint(milliseconds(ms)); }

TEST(Delays, AnswersThatMeetNoKillAreApart) {
  Delays delays;
  delays.OnAnswer(0, At(10), At(14));
  EXPECT_THAT(delays.undisturbed(), ElementsAre(milliseconds(4)));
  EXPECT_THAT(delays.kills(), IsEmpty());
}

TEST(Delays, CountFromTheKillOrFromTheRequestAndTheLongestOfAFunctionCounts) {
  Delays delays;
  delays.OnKill(Victim::kExecutor, At(100));
  delays.OnAnswer(0, At(50), At(130));
  delays.OnAnswer(0, At(135), At(140));
  delays.OnAnswer(1, At(110), At(160));
  delays.OnRecovery(At(170));
  ASSERT_EQ(delays.kills().size(), 1U);
  EXPECT_THAT(delays.kills()[0].longest,
              ElementsAre(Pair(0, milliseconds(30)), Pair(1, milliseconds(50))));
  EXPECT_EQ(delays.kills()[0].recovery, milliseconds(70));
  EXPECT_FALSE(delays.kills()[0].is_overlapped);
}

TEST(Delays, ARequestFromARecoveryIsNotUndisturbed) {
  Delays delays;
  delays.OnKill(Victim::kExecutor, At(100));
  delays.OnRecovery(At(170));
  delays.OnAnswer(0, At(160), At(400));
  delays.OnAnswer(0, At(410), At(411));
  EXPECT_THAT(delays.undisturbed(), ElementsAre(milliseconds(1)));
}

TEST(Delays, OfKillsThatOverlapOnlyTheNumberCounts) {
  Delays delays;
  delays.OnKill(Victim::kTorpord, At(100));
  delays.OnAnswer(0, At(90), At(120));
  delays.OnKill(Victim::kExecutor, At(150));
  delays.OnRecovery(At(300));
  delays.OnKill(Victim::kExecutor, At(400));
  delays.OnAnswer(0, At(410), At(412));
  delays.OnRecovery(At(420));
  auto victims = ByVictim(delays.kills());
  EXPECT_EQ(victims[Victim::kTorpord].overlapped, 1U);
  EXPECT_THAT(victims[Victim::kTorpord].waits, IsEmpty());
  EXPECT_EQ(victims[Victim::kExecutor].kills, 2U);
  EXPECT_EQ(victims[Victim::kExecutor].overlapped, 1U);
  EXPECT_THAT(victims[Victim::kExecutor].waits, ElementsAre(milliseconds(2)));
  EXPECT_THAT(victims[Victim::kExecutor].recoveries, ElementsAre(milliseconds(20)));
}

TEST(Delays, PercentilesAreOfWhatThereIs) {
  EXPECT_EQ(Percentile({}, 0.99), Duration::zero());
  EXPECT_EQ(Percentile({milliseconds(1), milliseconds(2), milliseconds(3)}, 0.5), milliseconds(2));
}

}  // namespace
}  // namespace torpor::chaos
