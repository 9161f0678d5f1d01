#include "emulator/driver/stream/model_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace torpor::emulator {
namespace {

using std::chrono::milliseconds;

TimePoint Now() { return std::chrono::steady_clock::now(); }

TEST(ModelClockTest, WorkThatWaitedMakesUpForALateThread) {
  const TimePoint submitted = Now() - milliseconds(50);
  const TimePoint end = Now() - milliseconds(10);
  ModelClock::Reach(end);
  ModelClock::BeginWork(submitted);
  const TimePoint ready = ModelClock::Ready();
  EXPECT_LE(ready, Now() - milliseconds(10));
  EXPECT_GE(ready, end);
}

TEST(ModelClockTest, WorkThatWaitedMakesUpForTheTimeBetweenItAndTheLast) {
  const TimePoint submitted = Now() - milliseconds(50);
  const TimePoint end = Now() - milliseconds(10);
  const TimePoint woke = ModelClock::Reach(end);
  ModelClock::EndWork();
  const TimePoint left = Now();
  while (Now() < left + milliseconds(2)) continue;
  const TimePoint back = Now();
  ModelClock::BeginWork(submitted);
  const TimePoint ready = ModelClock::Ready();
  const TimePoint begun = ModelClock::Begun();
  const Duration since = Now() - back;
  EXPECT_GE(ready, end);
  EXPECT_LE(ready, end + (left - woke) + since);
  EXPECT_GE(begun, woke);
  EXPECT_LE(begun, left + since);  // the account sees the gap
}

TEST(ModelClockTest, NoWorkIsReadyBeforeItWasSubmitted) {
  ModelClock::Reach(Now() - milliseconds(10));
  const TimePoint submitted = Now() - milliseconds(5);
  ModelClock::BeginWork(submitted);
  EXPECT_GE(ModelClock::Ready(), submitted);
  const TimePoint begun = Now();
  ModelClock::BeginWork();
  EXPECT_GE(ModelClock::Ready(), begun);
}

TEST(ModelClockTest, NoWorkEndsBeforeTheModelSaysSo) {
  const TimePoint end = Now() + milliseconds(2);
  EXPECT_GE(ModelClock::Reach(end), end);
  EXPECT_GE(Now(), end);
}

TEST(ModelClockTest, EveryThreadHasItsOwn) {
  ModelClock::Reach(Now() - milliseconds(10));
  std::thread([] {
    const TimePoint begun = Now();
    EXPECT_GE(ModelClock::Ready(), begun);
  }).join();
}

}  // namespace
}  // namespace torpor::emulator
