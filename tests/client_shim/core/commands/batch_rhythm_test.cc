#include "client_shim/core/commands/batch_rhythm.h"

#include <gtest/gtest.h>

namespace torpor::shim {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// Fills batches of the learned length, a call each `gap`, until the length no longer changes.
std::size_t Settled(BatchRhythm& rhythm, nanoseconds gap, nanoseconds sending) {
  for (int batch = 0; batch < 100; ++batch)
    rhythm.Note(rhythm.calls(), gap * static_cast<std::int64_t>(rhythm.calls()), sending);
  return rhythm.calls();
}

TEST(BatchRhythmTest, BeginsWithTheProfilesBest) {
  EXPECT_EQ(BatchRhythm().calls(), BatchRhythm::kFirstCalls);
}

TEST(BatchRhythmTest, SlowCallsLeaveInShortBatches) {
  BatchRhythm rhythm;
  EXPECT_EQ(Settled(rhythm, microseconds(20), microseconds(2)), BatchRhythm::kMinCalls);
}

TEST(BatchRhythmTest, FastCallsShareTheCostOfSending) {
  BatchRhythm rhythm;
  const std::size_t calls = Settled(rhythm, nanoseconds(200), microseconds(2));
  EXPECT_NEAR(static_cast<double>(calls), 2000 / (BatchRhythm::kSendingShare * 200), 2);
}

TEST(BatchRhythmTest, ACostlyWayMakesLongerBatches) {
  BatchRhythm cheap;
  BatchRhythm costly;
  EXPECT_LT(Settled(cheap, nanoseconds(300), microseconds(1)),
            Settled(costly, nanoseconds(300), microseconds(12)));
}

TEST(BatchRhythmTest, IsBounded) {
  BatchRhythm rhythm;
  EXPECT_EQ(Settled(rhythm, nanoseconds(1), microseconds(100)), BatchRhythm::kMaxCalls);
  rhythm.Note(0, microseconds(1), microseconds(1));
  rhythm.Note(1, nanoseconds(0), nanoseconds(0));
  EXPECT_GE(rhythm.calls(), BatchRhythm::kMinCalls);
  EXPECT_LE(rhythm.calls(), BatchRhythm::kMaxCalls);
}

TEST(BatchRhythmTest, AnInterruptionCountsLittle) {
  BatchRhythm rhythm;
  const std::size_t before = Settled(rhythm, nanoseconds(200), microseconds(2));
  rhythm.Note(before, nanoseconds(200) * static_cast<std::int64_t>(before),
              std::chrono::milliseconds(10));
  EXPECT_LE(rhythm.calls(), before * 3 / 2);
}

TEST(BatchRhythmTest, FollowsAChangeWithinAFewBatches) {
  BatchRhythm rhythm;
  Settled(rhythm, microseconds(20), microseconds(2));
  for (int batch = 0; batch < 20; ++batch)
    rhythm.Note(rhythm.calls(), nanoseconds(200) * static_cast<std::int64_t>(rhythm.calls()),
                microseconds(2));
  EXPECT_GT(rhythm.calls(), 100u);
}

}  // namespace
}  // namespace torpor::shim
