#include "client_shim/core/commands/command_channel.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>

#include "client_shim/core/quiet_calls.h"
#include "proto/cuda_api/cudart_commands.h"
#include "tests/client_shim/core/commands/channel_world.h"
#include "tests/client_shim/fake_executor.h"

// The channel without a session: no daemon, no service thread. The test is the service thread.
namespace torpor::shim {
namespace {

using testing::FakeExecutor;
using testing::ReceivedCommand;

constexpr std::uint32_t kSync = wire::DeviceSynchronize::kCallId;
constexpr std::uint32_t kLaunch = wire::LaunchKernel::kCallId;
constexpr auto kAttach = static_cast<std::uint32_t>(wire::ProtocolCall::kAttach);
constexpr auto kDrain = static_cast<std::uint32_t>(wire::ProtocolCall::kDrain);

class CommandChannelTest : public ChannelWorld {
 protected:
  CommandChannelTest() {
    options_.batch = {std::size_t{64} << 10, 1000, std::chrono::hours(1)};
    options_.lease_idle = std::chrono::hours(1);
    options_.attach.session_id = 42;
    Make();
  }
  void Make() {
    channel_ = std::make_unique<CommandChannel>(options_, Parts([this] { ++wakes_; }, {}));
  }
  bool Grant(std::uint64_t id, bool is_explicit = true) {
    wire::LeaseGrant grant;
    grant.lease_id = id;
    grant.is_explicit = is_explicit;
    grant.executor_socket = executor_.socket();
    grant.executor_epoch = 1;
    return channel_->OnGrant(grant);
  }
  cudaError_t Launch() { return channel_->Enqueue({kLaunch, {}}); }
  cudaError_t Synchronize() {
    CallReply reply;
    return channel_->Call({kSync, {}}, reply);
  }
  // Begins a call that the executor receives and does not answer.
  std::future<cudaError_t> UnansweredCall() {
    EXPECT_TRUE(Grant(7));
    EXPECT_EQ(Synchronize(), cudaSuccess);
    executor_.Pause();
    auto call = std::async(std::launch::async, [this] { return Synchronize(); });
    executor_.Await(kSync, 2);
    return call;
  }
  // As the service thread, until `done`.
  template <typename Condition>
  void Serve(const Condition& done) {
    while (!done()) {
      std::vector<CommandChannel::Watched> watched;
      channel_->Watch(watched);
      for (const auto& link : watched) channel_->OnReady(link.link, link.events);
      channel_->OnTimers();
    }
  }
  std::vector<std::uint32_t> Calls() const {
    std::vector<std::uint32_t> calls;
    for (const ReceivedCommand& command : executor_.commands()) calls.push_back(command.call_id);
    return calls;
  }

  ChannelOptions options_;
  std::atomic<int> wakes_{0};
  FakeExecutor executor_{::testing::TempDir() + "/channel-" + std::to_string(getpid()) + ".sock",
                         {kAttach, kDrain, kSync}};
  std::unique_ptr<CommandChannel> channel_;
};

TEST_F(CommandChannelTest, ACallRequestsALeaseAndGoesOnWithTheGrant) {
  EXPECT_TRUE(channel_->IsDrained());
  auto call = std::async(std::launch::async, [this] { return Synchronize(); });
  while (daemon_.All<wire::LeaseRequest>().empty()) std::this_thread::yield();
  EXPECT_TRUE(Grant(7));
  EXPECT_EQ(call.get(), cudaSuccess);
  EXPECT_EQ(daemon_.All<wire::LeaseAck>().at(0).lease_id, 7u);
  EXPECT_EQ(Calls(), (std::vector<std::uint32_t>{kAttach, kSync}));
  EXPECT_FALSE(channel_->IsDrained());
}

TEST_F(CommandChannelTest, CommandsWaitForAFlushInOneFrame) {
  ASSERT_TRUE(Grant(7));
  executor_.Await(kAttach);
  const int before = wakes_;
  for (int i = 0; i < 10; ++i) ASSERT_EQ(Launch(), cudaSuccess);
  EXPECT_EQ(wakes_, before + 1) << "the timer is armed once";
  EXPECT_EQ(channel_->command_count(), 10u);
  std::vector<CommandChannel::Watched> watched;
  EXPECT_TRUE(channel_->Watch(watched).has_value());
  channel_->Flush();
  executor_.Await(kLaunch, 10);
  EXPECT_EQ(executor_.frames(), 2u);
}

TEST_F(CommandChannelTest, AFullBatchLeavesAtOnce) {
  options_.batch.calls = 4;
  Make();
  ASSERT_TRUE(Grant(7));
  for (int i = 0; i < 4; ++i) ASSERT_EQ(Launch(), cudaSuccess);
  executor_.Await(kLaunch, 4);
}

TEST_F(CommandChannelTest, ALargePieceLeavesAtOnceAndArmsNoTimer) {
  ASSERT_TRUE(Grant(7));
  executor_.Await(kAttach);
  const int before = wakes_;
  WindowPiece piece;
  piece.bytes = std::uint64_t{1} << 20;
  ASSERT_EQ(channel_->Enqueue({kLaunch, {}, &piece}), cudaSuccess);
  executor_.Await(kLaunch);
  EXPECT_EQ(wakes_, before);
  piece.bytes = 1;
  ASSERT_EQ(channel_->Enqueue({kLaunch, {}, &piece}), cudaSuccess);
  EXPECT_EQ(wakes_, before + 1);
}

TEST_F(CommandChannelTest, ABatchThatIsDueLeavesWithTheTimer) {
  options_.batch.age = std::chrono::microseconds(0);
  Make();
  ASSERT_TRUE(Grant(7));
  ASSERT_EQ(Launch(), cudaSuccess);
  channel_->OnTimers();
  executor_.Await(kLaunch);
}

TEST_F(CommandChannelTest, ARevokedLeaseIsDrainedAndReturned) {
  ASSERT_TRUE(Grant(7));
  ASSERT_EQ(Launch(), cudaSuccess);
  channel_->OnRevoke({7});
  Serve([this] { return !daemon_.All<wire::LeaseReturned>().empty(); });
  EXPECT_EQ(Calls(), (std::vector<std::uint32_t>{kAttach, kLaunch, kDrain}));
  EXPECT_TRUE(channel_->IsDrained());
}

TEST_F(CommandChannelTest, ASecondGrantBreaksTheProtocol) {
  ASSERT_TRUE(Grant(7));
  EXPECT_FALSE(Grant(8));
}

TEST_F(CommandChannelTest, ALossFailsCallsAndCompletesSlots) {
  ASSERT_TRUE(Grant(7));
  const std::uint32_t slot = slots_.Allot();
  const std::uint64_t value = slots_.NextValue(slot);
  ASSERT_EQ(Launch(), cudaSuccess);
  channel_->OnLost({7, cudaErrorUnknown, false, "the executor died"});
  EXPECT_GE(slots_.Value(slot), value);
  EXPECT_EQ(Launch(), cudaErrorUnknown);
  EXPECT_EQ(channel_->TakeAsyncError(), cudaErrorUnknown);
  EXPECT_EQ(channel_->TakeAsyncError(), cudaSuccess);
}

TEST_F(CommandChannelTest, AnUnreachableExecutorIsReportedToTheDaemon) {
  executor_.Die();
  unlink(executor_.socket().c_str());
  EXPECT_TRUE(Grant(7));
  EXPECT_EQ(daemon_.All<wire::LeaseReturned>().at(0).lease_id, 7u);
  EXPECT_TRUE(daemon_.All<wire::LeaseAck>().empty());
  EXPECT_EQ(Launch(), cudaErrorDevicesUnavailable);
}

TEST_F(CommandChannelTest, ALostDaemonFailsTheWaitingCall) {
  std::future<cudaError_t> call = UnansweredCall();
  health_.SetStickyIfHealthy(cudaErrorDevicesUnavailable);
  channel_->OnDaemonLost();
  executor_.Resume();
  EXPECT_EQ(call.get(), cudaErrorDevicesUnavailable);
  EXPECT_EQ(Launch(), cudaErrorDevicesUnavailable);
}

TEST_F(CommandChannelTest, ALostContextsErrorOutlivesTheConnection) {
  std::future<cudaError_t> call = UnansweredCall();
  page_->sticky_error = cudaErrorIllegalAddress;
  executor_.Die();
  EXPECT_EQ(call.get(), cudaErrorIllegalAddress);
  EXPECT_EQ(Launch(), cudaErrorIllegalAddress);
}

TEST_F(CommandChannelTest, AnExecutorLearnsTheJournalBeforeCommands) {
  constexpr std::uint64_t kStream = 0x1'0000'0000'0001;
  channel_->Create(kStream, {wire::StreamCreate::kCallId, {}});
  EXPECT_TRUE(channel_->IsLive(kStream));
  EXPECT_EQ(channel_->command_count(), 0u);
  ASSERT_TRUE(Grant(7));
  ASSERT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(Calls(), (std::vector<std::uint32_t>{kAttach, wire::StreamCreate::kCallId, kSync}));
  EXPECT_EQ(channel_->Destroy(kStream, {wire::StreamDestroy::kCallId, {}}), cudaSuccess);
  EXPECT_EQ(channel_->Destroy(kStream, {}), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(channel_->Configure(kStream, {}, 0), cudaErrorInvalidResourceHandle);
}

TEST_F(CommandChannelTest, TheShareOfHeldTimeIsReported) {
  EXPECT_EQ(channel_->RecentShare(), 0);
  ASSERT_TRUE(Grant(7));
  ASSERT_EQ(Synchronize(), cudaSuccess);
  EXPECT_GT(channel_->RecentShare(), 0);
}

}  // namespace
}  // namespace torpor::shim
