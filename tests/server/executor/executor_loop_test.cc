#include "server/executor/executor_loop.h"

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

TEST_F(ExecutorLoopTest, ASessionsOperationsRunInOrderBesideThoseOfOthers) {
  record_.Hold("1");
  const std::string first = PostWork(1);
  const std::string second = PostWork(1);
  ASSERT_TRUE(record_.Await("1"));
  ASSERT_TRUE(record_.Await(PostWork(2)));
  ASSERT_TRUE(record_.Await(PostWork(3)));
  EXPECT_EQ(std::ranges::count(record_.noted(), "1"), 1);
  record_.LetGo("1");
  ASSERT_TRUE(record_.Await(second));
  std::vector<std::string> answers = record_.noted();
  std::erase_if(answers, [&](const auto& what) { return what != first && what != second; });
  EXPECT_THAT(answers, ElementsAre(first, second));
  ExpectThatStepsWereAlone();
}

TEST_F(ExecutorLoopTest, PagesAreLetGoOfOnlyWhileNobodyWorks) {
  v1::DaemonMessage release;
  release.mutable_release_image()->set_session_id(2);
  release.mutable_release_image()->mutable_extent()->set_bytes(2 * kMiB);
  release.mutable_release_image()->set_only_when_idle(true);
  BeginLease(1);
  ASSERT_TRUE(record_.Await(Post(release)));
  EXPECT_EQ(code_, absl::StatusCode::kAborted);
  ASSERT_TRUE(record_.Await(PostEndOfLease(1)));
  ASSERT_TRUE(record_.Await(Post(release)));
  EXPECT_EQ(code_, absl::StatusCode::kOk);
}

TEST_F(ExecutorLoopTest, EndsWhenWhatRunsHasEnded) {
  record_.Hold("1");
  const std::string operation = PostWork(1);
  ASSERT_TRUE(record_.Await("1"));
  const std::string shutdown = PostShutdown();
  ASSERT_TRUE(record_.Await(PostPing()));
  EXPECT_THAT(record_.noted(), Not(Contains(shutdown)));
  record_.LetGo("1");
  EXPECT_EQ(End(), ExitStatus::kShutdown);
  EXPECT_THAT(record_.noted(), Contains(operation));
  EXPECT_EQ(record_.noted().back(), shutdown);
}

// Closing every session would unmap a GPU's memory piece by piece.
TEST_F(ExecutorLoopTest, NothingBeginsAfterTheShutdown) {
  record_.Hold("1");
  PostWork(1);
  const std::string waiting = PostWork(1);
  ASSERT_TRUE(record_.Await("1"));
  const std::string shutdown = PostShutdown();
  const std::string late = PostWork(2);
  ASSERT_TRUE(record_.Await(PostPing()));
  record_.LetGo("1");
  EXPECT_EQ(End(), ExitStatus::kShutdown);
  EXPECT_THAT(record_.noted(), Contains(waiting)) << "it came before";
  EXPECT_THAT(record_.noted(), Not(Contains("2")));
  EXPECT_THAT(record_.noted(), Not(Contains(late)));
  EXPECT_EQ(record_.noted().back(), shutdown);
}

TEST_F(ExecutorLoopTest, EndsAtOnceWhenTorpordHasGone) {
  record_.Hold("1");
  PostWork(1);
  ASSERT_TRUE(record_.Await("1"));
  EXPECT_EQ(End(DaemonGone{"gone"}), ExitStatus::kDaemonLost);
}

TEST_F(ExecutorLoopTest, AnArrivalIsPassedOn) {
  loop_.OnArrival({2}, {}, {});
  EXPECT_TRUE(record_.Await("arrival of 2"));
}

}  // namespace
}  // namespace torpor::executor
