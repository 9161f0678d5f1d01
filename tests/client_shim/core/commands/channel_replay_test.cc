#include "client_shim/core/commands/channel_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "proto/cuda_api/cudart_commands.h"
#include "tests/client_shim/core/commands/channel_world.h"

// The replay without a channel: the test takes the batches, for executors that do not exist.
namespace torpor::shim {
namespace {

using State = ClientLease::State;
using ::testing::HasSubstr;

constexpr std::uint32_t kSync = wire::DeviceSynchronize::kCallId;
constexpr std::uint32_t kLaunch = wire::LaunchKernel::kCallId;

class DeafStream final : public FrameStream {
 public:
  bool is_introduced() const override { return true; }
  void Send(std::vector<std::uint8_t>& frame) override { frame.clear(); }
  void Write() override {}
  std::size_t unsent_bytes() const override { return 0; }
  bool awaits_service() const override { return false; }
  Arrival Await(bool) override { return Arrival::kNothing; }
  void Take(Arrival) override {}
  bool Next(std::span<const std::uint8_t>&) override { return false; }
  void End(const std::string& why) override { why_closed_ = why; }
  bool closed() const override { return !why_closed_.empty(); }
  const std::string& why_closed() const override { return why_closed_; }
  int fd() const override { return -1; }
  Polled Prepare(bool) override { return {}; }
  bool OnEvents(short) override { return false; }

 private:
  std::string why_closed_;
};

class ChannelReplayTest : public ChannelWorld {
 protected:
  explicit ChannelReplayTest(std::size_t replay_bytes = 1 << 20) {
    options_.replay_bytes = replay_bytes;
    options_.replay_age = std::chrono::seconds(7);
    replay_ = std::make_unique<ChannelReplay>(options_, parts_, links_);
  }
  static ExecutorLinkPtr Link() {
    return std::make_shared<ExecutorLink>(std::make_unique<DeafStream>());
  }

  // The session sends a batch of these calls.
  void Do(const std::vector<std::uint32_t>& calls) {
    for (const std::uint32_t call : calls) {
      batch_.Append(call, {}, ++number_);
      if (call == kSync) replay_->record().OnCall(number_);
    }
    replay_->OnBatch(batch_);
    batch_.Clear();
  }
  // The executor dies while the waiter waits for the command.
  void Lose(std::uint64_t number) {
    const ExecutorLinkPtr link = Link();
    waiter_.link = link;
    link->Expect({PendingReply::Kind::kCall, kSync, &waiter_, number});
    replay_->Suspend(link->Suspend("it died"), batch_);
  }
  bool NeedsReplay(bool replays, std::uint64_t saved, std::string& obstacle) {
    wire::LeaseGrant grant;
    grant.replays = replays;
    grant.saved_command = saved;
    return replay_->NeedsReplay(grant, obstacle);
  }
  // What the link is told, a number of commands for each batch.
  std::vector<std::uint32_t> Replay(const ExecutorLinkPtr& link) {
    std::vector<std::uint32_t> batches;
    replay_->Replay(link, batch_, [&] {
      batches.push_back(batch_.count());
      batch_.Clear();
    });
    return batches;
  }

  std::vector<std::uint64_t> saved_;
  ChannelOptions options_;
  ChannelParts parts_ = Parts([] {}, [this](std::uint64_t saved) { saved_.push_back(saved); });
  ExecutorLinks links_;
  BatchWriter batch_{{std::size_t{64} << 10, 1000, {}}};
  std::uint64_t number_ = 0;
  ReplyWaiter waiter_;
  std::unique_ptr<ChannelReplay> replay_;
};

TEST_F(ChannelReplayTest, ARecordAgesUntilACheckpoint) {
  EXPECT_FALSE(replay_->NextTimer(State::kHeld).has_value()) << "nothing to save";
  Do({kLaunch});
  EXPECT_FALSE(replay_->NextTimer(State::kNone).has_value()) << "no executor";
  const auto due = replay_->NextTimer(State::kHeld);
  ASSERT_TRUE(due.has_value());
  EXPECT_GT(*due, std::chrono::steady_clock::now());
  EXPECT_LE(*due, std::chrono::steady_clock::now() + options_.replay_age);
  EXPECT_TRUE(replay_->BeginCheckpoint());
  EXPECT_FALSE(replay_->BeginCheckpoint()) << "one at a time";
  EXPECT_FALSE(replay_->NextTimer(State::kHeld).has_value());
  replay_->OnCheckpoint(1);
  EXPECT_FALSE(replay_->is_checkpoint_due());
  EXPECT_EQ(saved_, std::vector<std::uint64_t>{1});
  EXPECT_FALSE(replay_->record().log().has_commands());
}

TEST_F(ChannelReplayTest, ACheckpointThatFailsEndsTheRecord) {
  Do({kLaunch});
  ASSERT_TRUE(replay_->BeginCheckpoint());
  replay_->OnCheckpointFailed("no room");
  EXPECT_FALSE(replay_->record().is_on());
  EXPECT_FALSE(replay_->BeginCheckpoint());
  EXPECT_THAT(replay_->record().obstacle(), HasSubstr("no room"));
}

TEST_F(ChannelReplayTest, ACallThatWaitsGetsItsAnswerFromTheNextExecutor) {
  Do({kLaunch, kSync});
  Lose(2);
  EXPECT_TRUE(replay_->owes_work());
  EXPECT_EQ(waiter_.link, nullptr);
  EXPECT_TRUE(replay_->NextTimer(State::kSuspended).has_value());
  std::string obstacle;
  ASSERT_TRUE(NeedsReplay(true, 0, obstacle));
  EXPECT_EQ(obstacle, "");
  const ExecutorLinkPtr next = Link();
  EXPECT_EQ(Replay(next), std::vector<std::uint32_t>{2});
  EXPECT_EQ(waiter_.link, next);
  EXPECT_TRUE(next->HasWaiter());
  EXPECT_FALSE(waiter_.done);
  replay_->NoteComplete();
  EXPECT_FALSE(replay_->owes_work());
}

TEST_F(ChannelReplayTest, WhatWasBatchedIsReplayedToo) {
  batch_.Append(kLaunch, {}, ++number_);
  replay_->Suspend({}, batch_);
  EXPECT_TRUE(batch_.empty());
  EXPECT_EQ(Replay(Link()), std::vector<std::uint32_t>{1});
}

TEST_F(ChannelReplayTest, WithoutALossNothingIsReplayed) {
  Do({kLaunch});
  std::string obstacle;
  EXPECT_FALSE(NeedsReplay(false, 1, obstacle));
  EXPECT_EQ(saved_, std::vector<std::uint64_t>{1}) << "a grant tells of saved memory, too";
}

TEST_F(ChannelReplayTest, AMemoryThatDoesNotGoWithTheRecordIsAnObstacle) {
  Do({kLaunch, kLaunch});
  replay_->Suspend({}, batch_);
  std::string obstacle;
  EXPECT_TRUE(NeedsReplay(true, 9, obstacle));
  EXPECT_THAT(obstacle, HasSubstr("as of command 9"));
  EXPECT_TRUE(NeedsReplay(false, 0, obstacle));
  EXPECT_THAT(obstacle, HasSubstr("for complete"));
}

TEST_F(ChannelReplayTest, WithoutATorpordNoLossIsTold) {
  Do({kSync});
  Lose(1);
  replay_->NoteDaemonGone();
  EXPECT_TRUE(replay_->daemon_is_gone());
  EXPECT_FALSE(replay_->NextTimer(State::kSuspended).has_value());
  replay_->NoteDaemonBack();
  EXPECT_FALSE(replay_->daemon_is_gone());
  EXPECT_TRUE(replay_->NextTimer(State::kSuspended).has_value());
}

TEST_F(ChannelReplayTest, AFailureIsToldToEachTorpord) {
  Do({kLaunch});
  replay_->Fail("it differs");
  ASSERT_EQ(daemon_.All<wire::ReplayFailed>().size(), 1u);
  replay_->NoteDaemonGone();
  replay_->NoteDaemonBack();
  ASSERT_EQ(daemon_.All<wire::ReplayFailed>().size(), 2u);
  EXPECT_EQ(daemon_.All<wire::ReplayFailed>()[1].reason, "it differs");
}

TEST_F(ChannelReplayTest, AFailureWithoutATorpordIsToldToTheNext) {
  Do({kLaunch});
  replay_->NoteDaemonGone();
  replay_->Fail("it differs");
  EXPECT_TRUE(daemon_.All<wire::ReplayFailed>().empty());
  replay_->NoteDaemonBack();
  EXPECT_EQ(daemon_.All<wire::ReplayFailed>().size(), 1u);
}

TEST_F(ChannelReplayTest, ADeathOfTorpordIsNoneOfTheReplay) {
  Do({kLaunch});
  for (int i = 0; i < 10; ++i) {
    replay_->Suspend({}, batch_);
    replay_->NoteDaemonGone();
    replay_->NoteDaemonBack();
    std::string obstacle;
    ASSERT_TRUE(NeedsReplay(true, 0, obstacle));
    EXPECT_EQ(obstacle, "");
    Replay(Link());
  }
}

TEST_F(ChannelReplayTest, AFailureIsToldOnce) {
  Do({kSync});
  Lose(1);
  EXPECT_TRUE(replay_->Fail("it differs"));
  EXPECT_FALSE(replay_->Fail("again"));
  EXPECT_EQ(waiter_.error, cudaErrorDevicesUnavailable);
  EXPECT_TRUE(waiter_.done);
  EXPECT_EQ(health_.sticky(), cudaErrorDevicesUnavailable);
  ASSERT_EQ(daemon_.All<wire::ReplayFailed>().size(), 1u);
  EXPECT_EQ(daemon_.All<wire::ReplayFailed>()[0].reason, "it differs");
}

class NothingIsRecorded : public ChannelReplayTest {
 protected:
  NothingIsRecorded() : ChannelReplayTest(0) {}
};

TEST_F(NothingIsRecorded, AndNothingCanBeReplayed) {
  Do({kLaunch});
  EXPECT_FALSE(replay_->BeginCheckpoint());
  std::string obstacle;
  EXPECT_TRUE(NeedsReplay(true, 0, obstacle));
  EXPECT_THAT(obstacle, HasSubstr("TORPOR_REPLAY_BYTES"));
}

}  // namespace
}  // namespace torpor::shim
