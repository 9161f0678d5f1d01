// Idle tasks of the loop: the time of their steps, beside operations and leases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/server/executor/executor_loop_fixture.h"

namespace torpor::executor {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

TEST_F(ExecutorLoopTest, ConsolidatesOnceItHasBeenQuiet) {
  EXPECT_THAT(record_.noted(), Not(Contains("step")));
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await("step"));
  // There was nothing to gain, and is not before something has happened.
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await(PostPing()));
  ASSERT_TRUE(record_.Await(PostWork(1)));
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await("step", 2));
  PostShutdown();
  EXPECT_EQ(End(), ExitStatus::kShutdown);
  EXPECT_EQ(Steps(), 2);
  ExpectThatStepsWereAlone();
}

TEST_F(ExecutorLoopTest, GoesOnAsLongAsThereIsSomethingToGain) {
  memory_.plans = {1, 2};
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await("step", 3));
  PostShutdown();
  EXPECT_EQ(End(), ExitStatus::kShutdown);
  EXPECT_EQ(Steps(), 3);
  EXPECT_EQ(std::ranges::count(record_.noted(), "move"), 3);
  EXPECT_EQ(std::ranges::count(record_.noted(), "memory is free"), 2);
}

TEST_F(ExecutorLoopTest, OfIdleTasksTheFirstThatGainsGoesOn) {
  memory_.plans = {1};
  other_.gains = 1;
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await("other", 2));
  std::vector<std::string> steps = record_.noted();
  std::erase_if(steps, [](const auto& what) { return what != "step" && what != "other"; });
  EXPECT_THAT(steps, ElementsAre("step", "step", "other", "other"));
}

TEST_F(ExecutorLoopTest, AnIdleTaskHasATimeOfItsOwn) {
  clock_.Pass(OtherTask::kQuiet);
  ASSERT_TRUE(record_.Await("other"));
  EXPECT_THAT(record_.noted(), Not(Contains("step")));
}

TEST_F(ExecutorLoopTest, AnIdleTaskThatWantsToLooksAgain) {
  other_.looks_again = true;
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await("other waits"));
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await(PostPing()));
  EXPECT_EQ(std::ranges::count(record_.noted(), "other"), 1);
  clock_.Pass(OtherTask::kInterval);
  ASSERT_TRUE(record_.Await("other", 2));
  EXPECT_EQ(Steps(), 1) << "nothing has happened";
}

TEST_F(ExecutorLoopTest, NothingIsConsolidatedBesideAnOperation) {
  BeginLease(1);
  record_.Hold("2");
  PostWork(2);
  ASSERT_TRUE(record_.Await("2"));
  // The loop waits until it is time to look after the lease again. Meanwhile this ends, without a
  // message yet, and when the loop looks what the time is nothing has come for long.
  const auto end_lease = [this] {
    EXPECT_TRUE((*registry_.Find({1}))->EndLease(kLease, TimePoint::max()).ok());
    clock_.Pass(kLong);
  };
  clock_.AtNextReadings({end_lease, [this] { record_.Note("looked"); }});
  ASSERT_TRUE(record_.Await("looked"));
  ASSERT_TRUE(record_.Await(PostWork(3)));
  record_.LetGo("2");
  PostShutdown();
  EXPECT_EQ(End(), ExitStatus::kShutdown);
  ExpectThatStepsWereAlone();
}

TEST_F(ExecutorLoopTest, NothingIsConsolidatedUnderALease) {
  BeginLease(1);
  clock_.Pass(kLong);
  AwaitWatch();
  EXPECT_THAT(record_.noted(), Not(Contains("step")));
  ASSERT_TRUE(record_.Await(PostEndOfLease(1)));
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await("step"));
}

TEST_F(ExecutorLoopTest, WhatComesDuringAStepBeginsWhenItHasEnded) {
  record_.Hold("step");
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await("step"));
  const std::string first = PostWork(1);
  const std::string second = PostWork(2);
  ASSERT_TRUE(record_.Await(PostPing())) << "it lives";
  EXPECT_THAT(record_.noted(), Not(Contains("1")));
  record_.LetGo("step");
  EXPECT_TRUE(record_.Await(first) && record_.Await(second));
  ExpectThatStepsWereAlone();
}

TEST_F(ExecutorLoopTest, AStepMakesWayForWhoComes) {
  memory_.plans = {2};
  record_.Hold("step");
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await("step"));
  const std::string operation = PostWork(1);
  ASSERT_TRUE(record_.Await(PostPing()));
  record_.LetGo("step");
  ASSERT_TRUE(record_.Await(operation));
  EXPECT_THAT(record_.noted(), Not(Contains("move")));
}

}  // namespace
}  // namespace torpor::executor
