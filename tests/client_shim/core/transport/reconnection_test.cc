#include "client_shim/core/transport/reconnection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <optional>

#include "client_shim/core/transport/handshake.h"
#include "tests/client_shim/core/http2.h"
#include "tests/client_shim/fake_daemon.h"

namespace torpor::shim {
namespace {

using std::chrono::milliseconds;
using testing::FakeDaemon;
using ::testing::HasSubstr;
using State = Reconnection::State;

class ReconnectionTest : public ::testing::Test {
 protected:
  ReconnectionTest() {
    Settings settings;
    settings.token = "secret";
    options_.resume = {HelloOf(settings), 42, {7, 8, 9}};
    reconnection_.emplace(options_, begin_);
  }
  // As the service thread does, with a clock of the test's own: it does not move while a torpord is
  // about to answer.
  State Converse(Reconnection::Time now) {
    for (;;) {
      const State state = reconnection_->Advance(now);
      if (state != State::kTrying || reconnection_->fd() < 0) return state;
      pollfd fd{reconnection_->fd(), reconnection_->EventsToWatch(), 0};
      poll(&fd, 1, -1);
    }
  }

  FakeDaemon daemon_{FakeDaemon::Script{}};
  ReconnectOptions options_{Http2(), daemon_.socket(), {}, std::chrono::seconds(60)};
  const Reconnection::Time begin_ = std::chrono::steady_clock::now();
  std::optional<Reconnection> reconnection_;
};

TEST_F(ReconnectionTest, IntroducesTheSessionToTheNextTorpord) {
  daemon_.set_resume_answer(wire::ResumeReply{0, "", 17});
  EXPECT_EQ(reconnection_->Advance(begin_), State::kTrying);
  EXPECT_EQ(reconnection_->fd(), -1) << "the torpord that has gone may still listen";
  ASSERT_EQ(Converse(begin_ + ConnectPauses::kFirst), State::kResumed);
  EXPECT_EQ(reconnection_->reply().saved_command, 17u);
  const auto resume = daemon_.Await<wire::Resume>();
  EXPECT_EQ(resume.hello.token, "secret");
  EXPECT_EQ(resume.session_id, 42u);
  EXPECT_EQ(resume.session_key, options_.resume.session_key);
  const std::unique_ptr<GrpcStream> stream = reconnection_->TakeStream();
  ASSERT_NE(stream, nullptr);
  EXPECT_FALSE(stream->closed());
}

TEST_F(ReconnectionTest, TriesAgainWithLongerAndLongerPauses) {
  daemon_.Stop();
  Reconnection::Time now = begin_;
  std::vector<std::int64_t> pauses;
  for (int i = 0; i < 9; ++i) {
    const Reconnection::Time next = reconnection_->NextTimer();
    pauses.push_back((next - now) / milliseconds(1));
    now = next;
    ASSERT_EQ(reconnection_->Advance(now), State::kTrying);
    EXPECT_EQ(reconnection_->fd(), -1);
  }
  EXPECT_EQ(pauses, (std::vector<std::int64_t>{10, 20, 40, 80, 160, 320, 500, 500, 500}));
  daemon_.Restart();
  EXPECT_EQ(Converse(reconnection_->NextTimer()), State::kResumed);
}

TEST_F(ReconnectionTest, ATorpordThatDiesBeforeItsAnswerIsNotTheLast) {
  daemon_.set_resume_answer(std::nullopt);
  const Reconnection::Time now = begin_ + ConnectPauses::kFirst;
  ASSERT_EQ(reconnection_->Advance(now), State::kTrying);
  ASSERT_GE(reconnection_->fd(), 0);
  reconnection_->Advance(now);
  daemon_.Restart();
  ASSERT_EQ(Converse(now), State::kTrying);
  EXPECT_EQ(reconnection_->fd(), -1);
  daemon_.set_resume_answer(wire::ResumeReply{});
  EXPECT_EQ(Converse(reconnection_->NextTimer()), State::kResumed);
}

TEST_F(ReconnectionTest, PatienceEnds) {
  daemon_.Stop();
  EXPECT_EQ(reconnection_->Advance(begin_ + options_.patience - milliseconds(1)), State::kTrying);
  EXPECT_EQ(reconnection_->NextTimer(), begin_ + options_.patience) << "before the next attempt";
  EXPECT_EQ(reconnection_->Advance(begin_ + options_.patience), State::kGivenUp);
  EXPECT_EQ(reconnection_->error(), cudaErrorDevicesUnavailable);
  EXPECT_THAT(reconnection_->why(), HasSubstr("no torpord answers"));
}

TEST_F(ReconnectionTest, PatienceEndsWithATorpordThatDoesNotAnswer) {
  daemon_.set_resume_answer(std::nullopt);
  ASSERT_EQ(reconnection_->Advance(begin_ + ConnectPauses::kFirst), State::kTrying);
  EXPECT_EQ(reconnection_->NextTimer(), begin_ + options_.patience);
  EXPECT_EQ(reconnection_->Advance(begin_ + options_.patience), State::kGivenUp);
  EXPECT_EQ(reconnection_->fd(), -1);
}

TEST_F(ReconnectionTest, ARefusalIsTheEnd) {
  daemon_.set_resume_answer(wire::ResumeReply{cudaErrorNotPermitted, "it is too late", 0});
  ASSERT_EQ(Converse(begin_ + ConnectPauses::kFirst), State::kRefused);
  EXPECT_EQ(reconnection_->error(), cudaErrorNotPermitted);
  EXPECT_THAT(reconnection_->why(), HasSubstr("it is too late"));
  EXPECT_EQ(reconnection_->fd(), -1);
  EXPECT_EQ(reconnection_->Advance(begin_ + std::chrono::hours(1)), State::kRefused);
}

TEST_F(ReconnectionTest, ATorpordOfAnotherVersionIsTheEnd) {
  wire::HelloReply refusal;
  refusal.error = cudaErrorInsufficientDriver;
  refusal.message = "protocol 7";
  daemon_.set_resume_answer(refusal);
  ASSERT_EQ(Converse(begin_ + ConnectPauses::kFirst), State::kRefused);
  EXPECT_EQ(reconnection_->error(), cudaErrorInsufficientDriver);
  EXPECT_THAT(reconnection_->why(), HasSubstr("protocol 7"));
}

TEST_F(ReconnectionTest, ATorpordThatIsNotUnderstoodIsTheEnd) {
  daemon_.set_resume_answer(std::nullopt);
  reconnection_->Advance(begin_ + ConnectPauses::kFirst);
  reconnection_->Advance(begin_ + ConnectPauses::kFirst);
  daemon_.Await<wire::Resume>();
  daemon_.SendRaw("nonsense");
  ASSERT_EQ(Converse(begin_ + ConnectPauses::kFirst), State::kRefused);
  EXPECT_THAT(reconnection_->why(), HasSubstr("another version"));
}

TEST_F(ReconnectionTest, ATorpordThatAnswersSomethingElseIsTheEnd) {
  daemon_.set_resume_answer(wire::LeaseRevoke{1});
  ASSERT_EQ(Converse(begin_ + ConnectPauses::kFirst), State::kRefused);
  EXPECT_THAT(reconnection_->why(), HasSubstr("unexpected"));
}

}  // namespace
}  // namespace torpor::shim
