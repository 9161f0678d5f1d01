// The loop notices a lost context, and names the session at fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "tests/server/executor/executor_loop_fixture.h"

namespace torpor::executor {
namespace {

using ::testing::Contains;

TEST_F(ExecutorLoopTest, AnOperationThatShowsThatTheContextIsLostEndsIt) {
  memory_.result = CUDA_ERROR_ILLEGAL_ADDRESS;
  const std::string operation = PostWork(2);
  EXPECT_EQ(End(), ExitStatus::kContextLost);
  EXPECT_THAT(record_.noted(), Contains(operation));
  EXPECT_EQ(record_.noted().back(), "lost by 2");
}

TEST_F(ExecutorLoopTest, ALostContextIsNoticedUnderALeaseAndIsItsHoldersFault) {
  BeginLease(3);
  watched = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(End(), ExitStatus::kContextLost);
  EXPECT_EQ(record_.noted().back(), "lost by 3");
}

TEST_F(ExecutorLoopTest, AFaultThatOnlyWorkMeetsIsNoticed) {
  BeginLease(3);
  recorded = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(End(), ExitStatus::kContextLost);
  EXPECT_EQ(record_.noted().back(), "lost by 3");
}

TEST_F(ExecutorLoopTest, AnErrorOfTheIdleWatchIsTheContextsWhateverItsCode) {
  BeginLease(3);
  watched = CUDA_ERROR_SYSTEM_NOT_READY;
  EXPECT_EQ(End(), ExitStatus::kContextLost);
}

TEST_F(ExecutorLoopTest, AnErrorThatMayMeanTheLossOfTheContextIsLookedInto) {
  memory_.result = CUDA_ERROR_UNKNOWN;
  ASSERT_TRUE(record_.Await(PostWork(2)));
  const std::string second = PostWork(2);
  EXPECT_TRUE(record_.Await(second)) << "the context is intact";
  recorded = CUDA_ERROR_UNKNOWN;
  PostWork(2);
  EXPECT_EQ(End(), ExitStatus::kContextLost);
  EXPECT_EQ(record_.noted().back(), "lost by 2");
}

TEST_F(ExecutorLoopTest, TheLossOfTheContextIsToldWithTheDriversWords) {
  std::fflush(stdout);
  const UniqueFd standard_output(dup(STDOUT_FILENO));
  ASSERT_TRUE(output_.TakeOver(cuda_.driver()).ok());
  cuda_.Say("Assertion `a < b` failed.");
  BeginLease(3);
  watched = CUDA_ERROR_ASSERT;
  EXPECT_EQ(End(), ExitStatus::kContextLost);
  std::fflush(stdout);
  dup2(standard_output.get(), STDOUT_FILENO);
  EXPECT_TRUE(why_lost_.ends_with("\nAssertion `a < b` failed.")) << why_lost_;
}

}  // namespace
}  // namespace torpor::executor
