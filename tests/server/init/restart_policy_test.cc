#include "server/init/restart_policy.h"

#include <gtest/gtest.h>

#include <csignal>

namespace torpor::init {
namespace {

constexpr Duration kShortRun = std::chrono::milliseconds(500);
constexpr Duration kLongRun = std::chrono::seconds(5);
constexpr int kKilled = 128 + SIGKILL;

class RestartPolicyTest : public ::testing::Test {
 protected:
  RestartPolicy policy_{{.first = std::chrono::milliseconds(100)}};
};

TEST_F(RestartPolicyTest, ADeadServerStartsAgainAtOnceAndThenLater) {
  policy_.OnReady();
  EXPECT_EQ(policy_.OnEnd(kKilled, kShortRun), Duration::zero());
  EXPECT_EQ(policy_.OnEnd(kKilled, kShortRun), std::chrono::milliseconds(100));
}

TEST_F(RestartPolicyTest, AServerThatServedForAWhileStartsAgainAtOnceEveryTime) {
  for (int i = 0; i < 5; ++i) {
    policy_.OnReady();
    EXPECT_EQ(policy_.OnEnd(kKilled, kLongRun), Duration::zero());
  }
}

TEST_F(RestartPolicyTest, ALongRunThatNeverServedIsAFailedStart) {
  policy_.OnReady();
  policy_.OnEnd(kKilled, kLongRun);
  EXPECT_EQ(policy_.OnEnd(kKilled, kLongRun), Duration::zero());
  EXPECT_EQ(policy_.OnEnd(kKilled, kLongRun), std::chrono::milliseconds(100));
}

TEST_F(RestartPolicyTest, AfterAStopThereIsNoStart) {
  for (const int number : {SIGTERM, SIGINT}) {
    RestartPolicy policy({});
    policy.OnReady();
    policy.OnSignal(number);
    EXPECT_TRUE(policy.is_stopping());
    EXPECT_EQ(policy.OnEnd(kKilled, kShortRun), std::nullopt);
  }
}

TEST_F(RestartPolicyTest, WhatNeverServedAndWouldEndTheSameWayIsNotTriedAgain) {
  for (const int status : {0, 2, 126, 127}) EXPECT_EQ(policy_.OnEnd(status, {}), std::nullopt);
  EXPECT_NE(policy_.OnEnd(1, {}), std::nullopt);
  EXPECT_NE(policy_.OnEnd(kKilled, {}), std::nullopt);
}

TEST_F(RestartPolicyTest, OnceItHasServedEveryEndIsTriedAgain) {
  policy_.OnReady();
  for (const int status : {0, 2, 126, 127}) EXPECT_NE(policy_.OnEnd(status, {}), std::nullopt);
}

TEST_F(RestartPolicyTest, ARestartThatWasWantedIsOne) {
  policy_.OnSignal(SIGUSR1);
  EXPECT_FALSE(policy_.is_stopping());
  EXPECT_NE(policy_.OnEnd(0, kShortRun), std::nullopt);
  EXPECT_EQ(policy_.OnEnd(0, kShortRun), std::nullopt);
}

TEST_F(RestartPolicyTest, OtherSignalsChangeNothing) {
  policy_.OnSignal(SIGHUP);
  EXPECT_FALSE(policy_.is_stopping());
  EXPECT_EQ(policy_.OnEnd(0, kShortRun), std::nullopt);
}

}  // namespace
}  // namespace torpor::init
