#include "server/processes/process_life.h"

#include <gtest/gtest.h>

#include <vector>

namespace torpor::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Action = ProcessLife::Action;
using State = ProcessLife::State;

constexpr Duration kGrace = seconds(3);

class ProcessLifeTest : public testing::Test {
 protected:
  // Goes to the time of the next action, which must be there, and returns the action.
  Action Next() {
    EXPECT_NE(life_.next(), TimePoint::max());
    if (life_.next() > now_) {
      EXPECT_EQ(life_.Due(life_.next() - Duration(1)), Action::kNone);
      now_ = life_.next();
    }
    const Action due = life_.Due(now_);
    EXPECT_TRUE(due == Action::kNone || life_.next() != now_) << "an action is due once";
    return due;
  }
  void Start() {
    ASSERT_EQ(Next(), Action::kStart);
    life_.OnStarted(now_);
  }
  void EndAfter(Duration run) {
    now_ += run;
    life_.OnEnded(now_);
  }

  TimePoint now_{seconds(100)};
  ProcessLife life_{{milliseconds(100), seconds(30), seconds(10)}, now_};
};

TEST_F(ProcessLifeTest, AProcessThatRunsIsLeftAlone) {
  Start();
  EXPECT_EQ(life_.state(), State::kRunning);
  EXPECT_EQ(life_.Due(now_ + seconds(1000)), Action::kNone);
  EXPECT_EQ(life_.next(), TimePoint::max());
  EXPECT_EQ(life_.restarts(), 0u);
}

TEST_F(ProcessLifeTest, OneThatEndsSoonIsStartedAfterLongerAndLongerPauses) {
  std::vector<std::int64_t> pauses_ms;
  for (int i = 0; i < 12; ++i) {
    Start();
    EndAfter(milliseconds(5));
    pauses_ms.push_back((life_.next() - now_) / milliseconds(1));
  }
  EXPECT_EQ(pauses_ms, (std::vector<std::int64_t>{0, 100, 200, 400, 800, 1600, 3200, 6400, 12800,
                                                  25600, 30000, 30000}));
  Start();
  EXPECT_EQ(life_.restarts(), 12u);
  EndAfter(seconds(10));
  EXPECT_EQ(life_.next(), now_) << "it ran well";
}

TEST_F(ProcessLifeTest, OneThatCannotBeStartedIsTriedAgain) {
  ASSERT_EQ(Next(), Action::kStart);
  life_.OnEnded(now_);
  ASSERT_EQ(Next(), Action::kStart);
  life_.OnEnded(now_);
  EXPECT_EQ(life_.next(), now_ + milliseconds(100));
  EXPECT_EQ(life_.restarts(), 0u);
}

TEST_F(ProcessLifeTest, StoppingAsksFirstAndKillsLater) {
  Start();
  life_.Stop(now_, kGrace);
  EXPECT_EQ(life_.state(), State::kStopping);
  EXPECT_EQ(Next(), Action::kTerminate);
  EXPECT_EQ(life_.next(), now_ + kGrace);
  EXPECT_EQ(Next(), Action::kKill);
  EXPECT_EQ(life_.next(), TimePoint::max());
  life_.OnEnded(now_);
  EXPECT_EQ(life_.state(), State::kOver);
  EXPECT_EQ(life_.next(), TimePoint::max());
}

TEST_F(ProcessLifeTest, OneThatEndsWhenAskedIsNotKilled) {
  Start();
  life_.Stop(now_, kGrace);
  EXPECT_EQ(Next(), Action::kTerminate);
  EndAfter(milliseconds(1));
  EXPECT_EQ(life_.state(), State::kOver);
  EXPECT_EQ(life_.Due(now_ + kGrace), Action::kNone);
}

TEST_F(ProcessLifeTest, AnotherOneThatIsAskedForStartsAtOnce) {
  for (int i = 0; i < 3; ++i) {
    Start();
    EndAfter(milliseconds(5));
  }
  Start();
  life_.Restart(now_, kGrace, /*is_faulty=*/false);
  EXPECT_EQ(Next(), Action::kTerminate);
  EndAfter(milliseconds(5));
  EXPECT_EQ(life_.state(), State::kPausing);
  EXPECT_EQ(life_.next(), now_);
}

TEST_F(ProcessLifeTest, AFaultyOneIsPacedAsOneThatEnds) {
  for (int i = 0; i < 3; ++i) {
    Start();
    life_.Restart(now_, kGrace, /*is_faulty=*/true);
    EXPECT_EQ(Next(), Action::kTerminate);
    EndAfter(milliseconds(5));
  }
  EXPECT_EQ(life_.next(), now_ + milliseconds(200));
}

TEST_F(ProcessLifeTest, TheLastWordCountsWhileAProcessEnds) {
  Start();
  life_.Stop(now_, kGrace);
  EXPECT_EQ(Next(), Action::kTerminate);
  life_.Restart(now_, kGrace, false);
  EndAfter(milliseconds(5));
  Start();
  life_.Restart(now_, kGrace, false);
  EXPECT_EQ(Next(), Action::kTerminate);
  life_.Stop(now_, kGrace);
  EXPECT_EQ(Next(), Action::kKill);
  life_.OnEnded(now_);
  EXPECT_EQ(life_.state(), State::kOver);
}

TEST_F(ProcessLifeTest, WithoutAProcessThereIsNothingToStop) {
  life_.Stop(now_, kGrace);
  EXPECT_EQ(life_.state(), State::kOver);
  EXPECT_EQ(life_.Due(now_ + seconds(100)), Action::kNone);
  life_.Restart(now_, kGrace, false);
  EXPECT_EQ(Next(), Action::kStart);
}

TEST_F(ProcessLifeTest, APauseIsNotCutShort) {
  for (int i = 0; i < 3; ++i) {
    Start();
    EndAfter(milliseconds(5));
  }
  const TimePoint next = life_.next();
  life_.Restart(now_, kGrace, /*is_faulty=*/true);
  EXPECT_EQ(life_.next(), next);
}

TEST_F(ProcessLifeTest, AnotherProgramIsStartedAtOnce) {
  for (int i = 0; i < 6; ++i) {
    Start();
    EndAfter(milliseconds(5));
  }
  ASSERT_GT(life_.next(), now_ + seconds(1));
  life_.Renew(now_);
  Start();
  EndAfter(milliseconds(5));
  EXPECT_EQ(life_.next(), now_) << "its first quick end";
  Start();
  life_.Renew(now_);
  EXPECT_EQ(life_.state(), State::kRunning);
}

}  // namespace
}  // namespace torpor::server
