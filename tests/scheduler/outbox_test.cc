#include "scheduler/outbox.h"

#include <gtest/gtest.h>

namespace torpor::scheduler {
namespace {

using std::chrono::seconds;

TEST(OutboxTest, TimeNeverGoesBack) {
  Outbox outbox;
  outbox.Begin(TimePoint(seconds(2)));
  outbox.Begin(TimePoint(seconds(1)));
  EXPECT_EQ(outbox.now(), TimePoint(seconds(2)));
}

TEST(OutboxTest, OnlyAnEarlierWakeUpIsAskedFor) {
  Outbox outbox;
  outbox.WakeAt(TimePoint(seconds(5)));
  outbox.WakeAt(TimePoint(seconds(6)));
  EXPECT_EQ(outbox.Take().size(), 1u);
  outbox.WakeAt(TimePoint(seconds(4)));
  EXPECT_EQ(outbox.Take().size(), 1u);
}

TEST(OutboxTest, AWakeUpThatHasComeIsAskedForAgain) {
  Outbox outbox;
  outbox.WakeAt(TimePoint(seconds(5)));
  outbox.Begin(TimePoint(seconds(5)));
  EXPECT_TRUE(outbox.Take().empty());
  outbox.WakeAt(TimePoint(seconds(6)));
  EXPECT_EQ(outbox.Take().size(), 1u);
}

}  // namespace
}  // namespace torpor::scheduler
