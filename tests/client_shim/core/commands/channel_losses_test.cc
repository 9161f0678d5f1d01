// Calls during an executor's death, or torpord's.
#include <gmock/gmock.h>

#include "tests/client_shim/core/commands/channel_that_loses.h"

namespace torpor::shim {
namespace {

using ::testing::HasSubstr;
using testing::ReceivedCommand;

using ChannelLossesTest = ChannelThatLoses;

TEST_F(ChannelLossesTest, ACallThatWaitsReturnsFromAnotherExecutor) {
  ASSERT_TRUE(Grant(0));
  for (int i = 0; i < 2; ++i) ASSERT_EQ(Launch(), cudaSuccess);
  channel_->Flush();
  executors_[0]->Await(kLaunch, 2);
  auto call = UnansweredCall(0);
  Die(0);
  EXPECT_FALSE(channel_->IsDrained());
  EXPECT_EQ(daemon_.All<wire::LeaseRequest>().size(), 1u);
  ASSERT_TRUE(Grant(1, /*replays=*/true));
  EXPECT_EQ(call.get(), cudaSuccess);
  EXPECT_EQ(Numbered(1), (Strings{Of(kLaunch, 1), Of(kLaunch, 2), Of(kSync, 3)}));
  EXPECT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(channel_->TakeAsyncError(), cudaSuccess);
  EXPECT_TRUE(daemon_.All<wire::ReplayFailed>().empty());
}

TEST_F(ChannelLossesTest, WhatWasBatchedIsNotLost) {
  ASSERT_TRUE(Grant(0));
  executors_[0]->Await(kAttach);
  ASSERT_EQ(Launch(), cudaSuccess);
  Die(0);
  EXPECT_TRUE(Numbered(0).empty());
  ASSERT_TRUE(Grant(1, true));
  EXPECT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(Numbered(1), (Strings{Of(kLaunch, 1), Of(kSync, 2)}));
}

TEST_F(ChannelLossesTest, CallsWithoutAnExecutorWaitForTheNext) {
  ASSERT_TRUE(Grant(0));
  ASSERT_EQ(Synchronize(), cudaSuccess);
  Die(0);
  auto launch = std::async(std::launch::async, [this] { return Launch(); });
  ASSERT_TRUE(Grant(1, true));
  EXPECT_EQ(launch.get(), cudaSuccess);
}

TEST_F(ChannelLossesTest, BeginsAtTheCheckpointWithItsObjects) {
  constexpr std::uint64_t kStream = 0x1'0000'0000'0001;
  constexpr std::uint64_t kOther = 0x1'0000'0000'0002;
  const auto create = [&](std::uint64_t stream) {
    const auto fields = wire::Encoded(wire::StreamCreate{stream, 0, 0});
    channel_->Create(stream, {wire::StreamCreate::kCallId, fields});
  };
  create(kStream);
  ASSERT_TRUE(Grant(0));
  ASSERT_EQ(Launch(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  const auto destroy = wire::Encoded(wire::StreamDestroy{kStream});
  ASSERT_EQ(channel_->Destroy(kStream, {wire::StreamDestroy::kCallId, destroy}), cudaSuccess);
  create(kOther);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  Die(0);
  ASSERT_TRUE(Grant(1, true, /*saved=*/2));
  EXPECT_EQ(saved_, 2u);
  EXPECT_EQ(Synchronize(), cudaSuccess);
  const auto commands = executors_[1]->Await(kSync, 2);
  std::vector<std::uint32_t> calls;
  calls.reserve(commands.size());
  for (const ReceivedCommand& command : commands) calls.push_back(command.call_id);
  EXPECT_EQ(calls, (std::vector<std::uint32_t>{kAttach, wire::StreamCreate::kCallId,
                                               wire::StreamDestroy::kCallId,
                                               wire::StreamCreate::kCallId, kSync, kSync}));
  EXPECT_EQ(commands[1].number, 0u) << "as of the checkpoint";
  EXPECT_EQ(commands[2].number, 3u);
}

TEST_F(ChannelLossesTest, ResultsThatTheProgramHasSeenMustComeAgain) {
  ASSERT_TRUE(Grant(0));
  ASSERT_EQ(Download(), cudaSuccess);
  Die(0);
  ASSERT_TRUE(Grant(1, true));
  EXPECT_EQ(Synchronize(), cudaSuccess);
  EXPECT_TRUE(daemon_.All<wire::ReplayFailed>().empty());
  value_ = 6;
  Die(1);
  ASSERT_TRUE(Grant(2, true));
  EXPECT_EQ(Synchronize(), cudaErrorDevicesUnavailable);
  ASSERT_EQ(daemon_.All<wire::ReplayFailed>().size(), 1u);
  EXPECT_THAT(daemon_.All<wire::ReplayFailed>()[0].reason,
              HasSubstr("call 134 (command 1) gave another result"));
  EXPECT_EQ(health_.sticky(), cudaErrorDevicesUnavailable);
}

TEST_F(ChannelLossesTest, AnImageOfAnotherTimeFailsTheSession) {
  ASSERT_TRUE(Grant(0));
  auto call = UnansweredCall(0);
  Die(0);
  ASSERT_TRUE(Grant(1, true, /*saved=*/9));
  EXPECT_EQ(call.get(), cudaErrorDevicesUnavailable);
  ASSERT_EQ(daemon_.All<wire::ReplayFailed>().size(), 1u);
  EXPECT_THAT(daemon_.All<wire::ReplayFailed>()[0].reason, HasSubstr("as of command 9"));
}

TEST_F(ChannelLossesTest, ObstaclesFailTheSessionAtOnce) {
  ASSERT_TRUE(Grant(0));
  channel_->NoteLastingObstacle("somebody else writes");
  auto call = UnansweredCall(0);
  Die(0);
  EXPECT_EQ(call.get(), cudaErrorDevicesUnavailable);
  ASSERT_EQ(daemon_.All<wire::ReplayFailed>().size(), 1u);
  EXPECT_EQ(daemon_.All<wire::ReplayFailed>()[0].reason, "somebody else writes");
}

TEST_F(ChannelLossesTest, DiesAgainAFewTimesOnly) {
  ASSERT_TRUE(Grant(0));
  auto call = UnansweredCall(0);
  for (std::size_t executor = 0; executor < 3; ++executor) {
    Die(executor);
    executors_[executor + 1]->Pause();
    ASSERT_TRUE(Grant(executor + 1, true));
    executors_[executor + 1]->Await(kSync);
    EXPECT_EQ(Numbered(executor + 1), Strings{Of(kSync, 1)});
  }
  Die(3);
  ASSERT_TRUE(Grant(4, true));
  EXPECT_EQ(call.get(), cudaErrorDevicesUnavailable);
  EXPECT_THAT(daemon_.All<wire::ReplayFailed>().at(0).reason, HasSubstr("3 times"));
}

TEST_F(ChannelLossesTest, WorkOfAnEarlierLeaseIsReplayedWithTheNext) {
  ASSERT_TRUE(Grant(0));
  ASSERT_EQ(Launch(), cudaSuccess);
  channel_->OnRevoke({lease_});
  Serve([this] { return !daemon_.All<wire::LeaseReturned>().empty(); });
  EXPECT_TRUE(channel_->IsDrained());
  executors_[0]->Die();
  ASSERT_TRUE(Grant(1, true));
  EXPECT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(Numbered(1), (Strings{Of(kLaunch, 1), Of(kSync, 2)}));
}

TEST_F(ChannelLossesTest, ASuspendedLeaseIsLostIfTheDaemonSaysSo) {
  ASSERT_TRUE(Grant(0));
  auto call = UnansweredCall(0);
  executors_[0]->Die();
  channel_->OnLost({lease_, cudaErrorDevicesUnavailable, true, "the image is half written"});
  EXPECT_EQ(call.get(), cudaErrorDevicesUnavailable);
}

TEST_F(ChannelLossesTest, AnObstacleCountsOnceTheLossIsCertain) {
  ASSERT_TRUE(Grant(0));
  channel_->NoteLastingObstacle("somebody else writes");
  auto call = UnansweredCall(0);
  executors_[0]->Die();
  AwaitSuspension();
  EXPECT_TRUE(daemon_.All<wire::ReplayFailed>().empty());
  EXPECT_EQ(health_.sticky(), cudaSuccess) << "torpord may be gone, too";
  wire::LeaseLost lost{lease_, cudaErrorDevicesUnavailable, false, "the executor died"};
  lost.replays = true;
  channel_->OnLost(lost);
  EXPECT_EQ(call.get(), cudaErrorDevicesUnavailable);
  EXPECT_EQ(daemon_.All<wire::ReplayFailed>().size(), 1u);
}

// --- torpord's end -------------------------------------------------------------------------------

TEST_F(ChannelLossesTest, ACallOutlivesTorpord) {
  ASSERT_TRUE(Grant(0));
  ASSERT_EQ(Launch(), cudaSuccess);
  channel_->Flush();
  executors_[0]->Await(kLaunch);
  auto call = UnansweredCall(0);
  channel_->OnDaemonGone();
  executors_[0]->Die();
  AwaitNoLink();
  EXPECT_FALSE(channel_->IsDrained());
  std::vector<CommandChannel::Watched> watched;
  EXPECT_FALSE(channel_->Watch(watched).has_value()) << "nobody will tell of the executor's end";
  EXPECT_TRUE(watched.empty()) << "a link of the torpord that has gone";
  EXPECT_TRUE(daemon_.All<wire::LeaseRequest>().empty());
  channel_->OnResumed({});
  EXPECT_EQ(daemon_.All<wire::LeaseRequest>().size(), 1u);
  ASSERT_TRUE(Grant(1, /*replays=*/true));
  EXPECT_EQ(call.get(), cudaSuccess);
  EXPECT_EQ(Numbered(1), (Strings{Of(kLaunch, 1), Of(kSync, 2)}));
  EXPECT_EQ(channel_->TakeAsyncError(), cudaSuccess);
}

TEST_F(ChannelLossesTest, ALeaseGoesOnWithoutTorpord) {
  ASSERT_TRUE(Grant(0));
  channel_->OnDaemonGone();
  ASSERT_EQ(Launch(), cudaSuccess);
  EXPECT_EQ(Synchronize(), cudaSuccess);
  // The executor has let go of the session, whether its word has come or not.
  channel_->OnResumed({});
  EXPECT_EQ(daemon_.All<wire::LeaseRequest>().size(), 1u) << "for the replay";
  ASSERT_TRUE(Grant(1, /*replays=*/true));
  EXPECT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(Numbered(1), (Strings{Of(kLaunch, 1), Of(kSync, 2), Of(kSync, 3)}));
}

TEST_F(ChannelLossesTest, AnExecutorThatDiedFirstIsTorpordsEnd) {
  ASSERT_TRUE(Grant(0));
  auto call = UnansweredCall(0);
  executors_[0]->Die();
  AwaitSuspension();
  channel_->OnDaemonGone();
  channel_->OnResumed({});
  ASSERT_TRUE(Grant(1, true));
  EXPECT_EQ(call.get(), cudaSuccess);
  EXPECT_EQ(health_.sticky(), cudaSuccess);
}

TEST_F(ChannelLossesTest, AWishForALeaseIsToldToTheNextTorpord) {
  auto first = std::async(std::launch::async, [this] { return Synchronize(); });
  while (daemon_.All<wire::LeaseRequest>().empty()) std::this_thread::yield();
  channel_->OnDaemonGone();
  channel_->OnResumed({});
  EXPECT_EQ(daemon_.All<wire::LeaseRequest>().size(), 2u);
  ASSERT_TRUE(Grant(0));
  EXPECT_EQ(first.get(), cudaSuccess);
}

TEST_F(ChannelLossesTest, CallsWithoutATorpordWaitForTheNext) {
  channel_->OnDaemonGone();
  auto call = std::async(std::launch::async, [this] { return Synchronize(); });
  channel_->OnResumed({});
  while (daemon_.All<wire::LeaseRequest>().empty()) std::this_thread::yield();
  ASSERT_TRUE(Grant(0));
  EXPECT_EQ(call.get(), cudaSuccess);
  EXPECT_EQ(daemon_.All<wire::LeaseRequest>().size(), 1u);
}

TEST_F(ChannelLossesTest, WithoutALeaseNothingIsLost) {
  channel_->OnDaemonGone();
  EXPECT_TRUE(channel_->IsDrained());
  channel_->OnResumed({});
  EXPECT_TRUE(daemon_.All<wire::LeaseRequest>().empty());
  ASSERT_TRUE(Grant(0));
  EXPECT_EQ(Synchronize(), cudaSuccess);
}

TEST_F(ChannelLossesTest, WhatStandsInTheWayFailsWithTheNextTorpord) {
  ASSERT_TRUE(Grant(0));
  channel_->NoteLastingObstacle("somebody else writes");
  auto call = UnansweredCall(0);
  channel_->OnDaemonGone();
  EXPECT_EQ(health_.sticky(), cudaSuccess);
  channel_->OnResumed({});
  EXPECT_EQ(call.get(), cudaErrorDevicesUnavailable);
  ASSERT_EQ(daemon_.All<wire::ReplayFailed>().size(), 1u);
  EXPECT_EQ(daemon_.All<wire::ReplayFailed>()[0].reason, "somebody else writes");
}

TEST_F(ChannelLossesTest, WhatTorpordHasSavedStandsInNoWay) {
  ASSERT_TRUE(Grant(0));
  const auto wait = wire::Encoded(wire::SharedEventWait{});
  ASSERT_EQ(channel_->Enqueue({wire::SharedEventWait::kCallId, wait}), cudaSuccess);
  channel_->Flush();
  channel_->OnDaemonGone();
  wire::ResumeReply resumed;
  resumed.saved_command = 1;
  channel_->OnResumed(resumed);
  EXPECT_EQ(saved_, 1u);
  ASSERT_TRUE(Grant(1, true, /*saved=*/1));
  EXPECT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(Numbered(1), Strings{Of(kSync, 2)});
  EXPECT_TRUE(daemon_.All<wire::ReplayFailed>().empty());
}

TEST_F(ChannelLossesTest, NoTorpordAtAllFailsCallsThatWait) {
  ASSERT_TRUE(Grant(0));
  auto call = UnansweredCall(0);
  auto launch = std::async(std::launch::async, [this] {
    while (Launch() == cudaSuccess) std::this_thread::yield();
    return Launch();
  });
  channel_->OnDaemonGone();
  health_.SetSticky(cudaErrorInsufficientDriver);
  channel_->OnDaemonLost();
  EXPECT_EQ(call.get(), cudaErrorInsufficientDriver);
  EXPECT_EQ(launch.get(), cudaErrorInsufficientDriver);
}

class FullRecord : public ChannelThatLoses {
 protected:
  FullRecord() : ChannelThatLoses(4096) {}
};

TEST_F(FullRecord, HasTheMemorySavedAndForgets) {
  ASSERT_TRUE(Grant(0));
  const std::vector<std::uint8_t> fields(1900);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(channel_->Enqueue({kLaunch, fields}), cudaSuccess);
    channel_->Flush();
  }
  EXPECT_EQ(saved_, 0u);
  ASSERT_EQ(channel_->Enqueue({kLaunch, fields}), cudaSuccess);
  executors_[0]->Await(kCheckpoint);
  Serve([this] { return saved_ > 0; });
  EXPECT_GE(saved_, 3u);
  Die(0);
  ASSERT_TRUE(Grant(1, true, saved_));
  EXPECT_EQ(Synchronize(), cudaSuccess);
  EXPECT_LE(Numbered(1).size(), 2u);
}

TEST_F(FullRecord, SavesWhenAsked) {
  ASSERT_TRUE(Grant(0));
  ASSERT_EQ(Launch(), cudaSuccess);
  EXPECT_TRUE(channel_->DefersFrees());
  auto saving = std::async(std::launch::async, [this] { return channel_->SaveMemory(); });
  executors_[0]->Await(kCheckpoint);
  Serve([this] { return saved_ > 0; });
  EXPECT_EQ(saving.get(), cudaSuccess);
  EXPECT_FALSE(channel_->DefersFrees());
}

class NothingRecorded : public ChannelThatLoses {
 protected:
  NothingRecorded() : ChannelThatLoses(0) {}
};

TEST_F(NothingRecorded, IsToldToTheDaemon) {
  ASSERT_TRUE(Grant(0));
  auto call = UnansweredCall(0);
  Die(0);
  EXPECT_EQ(call.get(), cudaErrorDevicesUnavailable);
  EXPECT_THAT(daemon_.All<wire::ReplayFailed>().at(0).reason, HasSubstr("TORPOR_REPLAY_BYTES"));
}

TEST_F(NothingRecorded, FailsWithTheNextTorpord) {
  ASSERT_TRUE(Grant(0));
  auto call = UnansweredCall(0);
  channel_->OnDaemonGone();
  EXPECT_EQ(health_.sticky(), cudaSuccess);
  channel_->OnResumed({});
  EXPECT_EQ(call.get(), cudaErrorDevicesUnavailable);
  EXPECT_EQ(health_.sticky(), cudaErrorDevicesUnavailable);
}

class NotReplayed : public ChannelThatLoses {
 protected:
  NotReplayed() : ChannelThatLoses(0, /*replays=*/false) {}
};

TEST_F(NotReplayed, LosesTheCallsOfTheLeaseAndGoesOn) {
  ASSERT_TRUE(Grant(0));
  auto call = UnansweredCall(0);
  channel_->OnDaemonGone();
  channel_->OnResumed({});
  EXPECT_EQ(call.get(), cudaErrorDevicesUnavailable);
  EXPECT_EQ(health_.sticky(), cudaSuccess);
  auto next = std::async(std::launch::async, [this] { return Synchronize(); });
  while (daemon_.All<wire::LeaseRequest>().empty()) std::this_thread::yield();
  ASSERT_TRUE(Grant(1));
  EXPECT_EQ(next.get(), cudaSuccess);
  EXPECT_TRUE(daemon_.All<wire::ReplayFailed>().empty());
}

TEST_F(NotReplayed, AnExecutorThatDiesWithoutTorpordEndsTheLease) {
  ASSERT_TRUE(Grant(0));
  auto call = UnansweredCall(0);
  channel_->OnDaemonGone();
  executors_[0]->Die();
  EXPECT_EQ(call.get(), cudaErrorDevicesUnavailable);
  auto next = std::async(std::launch::async, [this] { return Synchronize(); });
  channel_->OnResumed({});
  while (daemon_.All<wire::LeaseRequest>().empty()) std::this_thread::yield();
  ASSERT_TRUE(Grant(1));
  EXPECT_EQ(next.get(), cudaSuccess);
}

TEST_F(NotReplayed, AnUntoldLossIsTold) {
  ASSERT_TRUE(Grant(0));
  executors_[0]->Await(kAttach);
  ASSERT_EQ(Launch(), cudaSuccess);
  channel_->Flush();
  channel_->OnDaemonGone();
  channel_->OnResumed({});
  EXPECT_EQ(Synchronize(), cudaErrorDevicesUnavailable);
  auto next = std::async(std::launch::async, [this] { return Synchronize(); });
  while (daemon_.All<wire::LeaseRequest>().empty()) std::this_thread::yield();
  ASSERT_TRUE(Grant(1));
  EXPECT_EQ(next.get(), cudaSuccess);
}

}  // namespace
}  // namespace torpor::shim
