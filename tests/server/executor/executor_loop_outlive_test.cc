// The loop when torpord has gone and another one comes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/server/executor/executor_loop_fixture.h"

namespace torpor::executor {
namespace {

using ::testing::Contains;
using ::testing::Not;

class OutlivingLoop : public ExecutorLoopTest {
 protected:
  void SetUp() override {
    ExecutorLoopTest::SetUp();
    PostOutlive(5000);
  }
  void LoseDaemon() {
    loop_.Post(DaemonGone{"gone"});
    ASSERT_TRUE(record_.Await("awaits 5000 ms"));
  }
};

TEST_F(OutlivingLoop, LeasesGoOnUntilTheNextTorpordListens) {
  BeginLease(1);
  ASSERT_NO_FATAL_FAILURE(LoseDaemon());
  EXPECT_TRUE((*registry_.Find({1}))->has_lease());
  EXPECT_EQ(registry_.All().size(), 3u);
  loop_.Post(DaemonBack{});
  EXPECT_TRUE(record_.Await("registers with 0 sessions"));
}

TEST_F(OutlivingLoop, RegistersOnceWhatRunsHasEnded) {
  record_.Hold("1");
  PostWork(1);
  const std::string waiting = PostWork(1);
  ASSERT_TRUE(record_.Await("1"));
  ASSERT_NO_FATAL_FAILURE(LoseDaemon());
  loop_.Post(DaemonBack{});
  ASSERT_TRUE(record_.Await("answer 0", 2)) << "two sessions are closed";
  EXPECT_THAT(record_.noted(), Not(Contains("registers with 1 sessions")));
  record_.LetGo("1");
  ASSERT_TRUE(record_.Await("registers with 0 sessions"));
  EXPECT_THAT(record_.noted(), Not(Contains(waiting))) << "nobody waits for it";
}

TEST_F(OutlivingLoop, ServesTheNextTorpord) {
  ASSERT_NO_FATAL_FAILURE(LoseDaemon());
  loop_.Post(DaemonBack{});
  ASSERT_TRUE(record_.Await("registers with 0 sessions"));
  EXPECT_TRUE(record_.Await(PostPing()));
  const std::string shutdown = PostShutdown();
  EXPECT_EQ(End(), ExitStatus::kShutdown);
  EXPECT_THAT(record_.noted(), Contains(shutdown));
}

TEST_F(OutlivingLoop, TheNextTorpordMayGoBeforeItHasSaidAnything) {
  ASSERT_NO_FATAL_FAILURE(LoseDaemon());
  loop_.Post(DaemonBack{});
  ASSERT_TRUE(record_.Await("registers with 0 sessions"));
  loop_.Post(DaemonGone{"gone as well"});
  ASSERT_TRUE(record_.Await("awaits 5000 ms", 2));
  loop_.Post(DaemonBack{});
  EXPECT_TRUE(record_.Await("registers with 0 sessions", 2));
}

TEST_F(OutlivingLoop, EndsIfNoOtherTorpordComes) {
  ASSERT_NO_FATAL_FAILURE(LoseDaemon());
  EXPECT_EQ(End(DaemonGone{"no other has come", true}), ExitStatus::kDaemonLost);
}

TEST_F(OutlivingLoop, AShutdownIsNotWaitedOutFor) {
  record_.Hold("1");
  PostWork(1);
  ASSERT_TRUE(record_.Await("1"));
  PostShutdown();
  EXPECT_EQ(End(DaemonGone{"gone"}), ExitStatus::kDaemonLost);
}

}  // namespace
}  // namespace torpor::executor
