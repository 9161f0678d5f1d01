#include "tests/server/controller/controller_harness.h"

namespace torpor::server {
namespace {

// Two GPUs, and a process of the function pair, which uses both.
class ControllerFamilies : public ControllerHarness {
 protected:
  ControllerFamilies() : ControllerHarness(2) {
    StartExecutor(0);
    StartExecutor(1);
    first_ = Connect("token-pair");
  }

  // Both devices' memory and leases.
  void UseBoth() {
    second_ = ConnectDevice("token-pair", first_, 1);
    ASSERT_EQ(Malloc(first_, 4 * kMiB)->error, 0);
    ASSERT_EQ(Malloc(second_, 6 * kMiB)->error, 0);
    Say(first_, wire::LeaseRequest{});
    first_lease_ = TakeLease(first_);
    Say(second_, wire::LeaseRequest{});
    second_lease_ = TakeLease(second_);
    ASSERT_TRUE(first_lease_ && second_lease_);
  }
  std::uint64_t IdOf(const Client& client) const { return client.hello.session_id; }
  Executor& ExecutorOf(const std::optional<wire::LeaseGrant>& lease) {
    return executors_.at(lease->gpu);
  }

  Client first_;
  Client second_;
  std::optional<wire::LeaseGrant> first_lease_;
  std::optional<wire::LeaseGrant> second_lease_;
};

TEST_F(ControllerFamilies, AProcessSeesAllItsDevices) {
  EXPECT_EQ(first_.hello.devices.size(), 2u);
  EXPECT_TRUE(first_.hello.has_peer_access);
  EXPECT_GT(first_.hello.host_bytes, 0u);
  second_ = ConnectDevice("token-pair", first_, 1);
  EXPECT_EQ(second_.hello.devices.size(), 2u);
  EXPECT_EQ(second_.hello.host_bytes, 0u);
  EXPECT_EQ(second_.hello.device_base, first_.hello.device_base) << "the node's";
  EXPECT_EQ(Connect("token-a").hello.devices.size(), 1u);
}

// By streams of their own, the first session's HelloAck may come after the second's DeviceHello.
TEST_F(ControllerFamilies, AFurtherSessionWaitsUntilTheFirstIsOpen) {
  first_ = Hello("token-pair");
  first_.hello = *first_.link->Take<wire::HelloReply>();
  second_ = HelloForDevice("token-pair", first_, 1);
  EXPECT_FALSE(second_.link->Take<wire::HelloReply>());
  Say(first_, wire::HelloAck{});
  second_ = Open(second_);
  EXPECT_EQ(second_.hello.devices.size(), 2u);
}

TEST_F(ControllerFamilies, AFurtherSessionGoesWithAFirstThatNeverOpens) {
  first_ = Hello("token-pair");
  first_.hello = *first_.link->Take<wire::HelloReply>();
  second_ = HelloForDevice("token-pair", first_, 1);
  Disconnect(first_);
  EXPECT_TRUE(second_.link->closed);
}

TEST_F(ControllerFamilies, OnlyTheProcessItselfOpensItsFurtherDevices) {
  const auto refused = [this](const std::string& token, const Client& first, int device) {
    const auto reply = HelloForDevice(token, first, device).link->Take<wire::HelloReply>();
    return reply && reply->error != 0;
  };
  Client forger = first_;
  forger.hello.session_key.fill(0);
  EXPECT_TRUE(refused("token-pair", forger, 1)) << "no key";
  EXPECT_TRUE(refused("token-a", first_, 1)) << "another function";
  EXPECT_TRUE(refused("token-pair", first_, 2)) << "more than the function has";
  EXPECT_TRUE(refused("token-pair", first_, 0)) << "the first is there";
  EXPECT_TRUE(refused("token-pair", first_, -1));
  second_ = ConnectDevice("token-pair", first_, 1);
  EXPECT_TRUE(refused("token-pair", first_, 1)) << "twice";
  EXPECT_TRUE(refused("token-pair", second_, 1)) << "not by way of a further one";
  EXPECT_FALSE(first_.link->closed) << "a refusal harms nobody else";
  EXPECT_FALSE(second_.link->closed);
}

TEST_F(ControllerFamilies, LeaseOneGpuForEachDeviceAndReachEachOther) {
  UseBoth();
  EXPECT_NE(first_lease_->gpu, second_lease_->gpu);
  EXPECT_EQ(first_lease_->lease_id, second_lease_->lease_id);
  EXPECT_EQ(ExecutorOf(first_lease_).reached.count(IdOf(second_)), 1u);
  EXPECT_EQ(ExecutorOf(second_lease_).reached.count(IdOf(first_)), 1u);
}

TEST_F(ControllerFamilies, PeersLearnOfWhatIsAllocatedAndFreed) {
  UseBoth();
  const Bytes& reached = ExecutorOf(second_lease_).reached[IdOf(first_)];
  const auto more = Malloc(first_, 2 * kMiB);
  ASSERT_EQ(more->error, 0);
  EXPECT_EQ(reached, 6 * kMiB);
  EXPECT_EQ(Free(first_, more->address)->error, 0);
  EXPECT_EQ(reached, 4 * kMiB);
}

TEST_F(ControllerFamilies, ChunksAreGivenBackOnlyWhenNoPeerReachesThem) {
  UseBoth();
  const auto more = Malloc(first_, 2 * kMiB);
  Hold(&v1::DaemonMessage::has_map_peer);
  EXPECT_FALSE(Free(first_, more->address)) << "the peer has not let go";
  for (const v1::DaemonMessage& operation : ExecutorOf(first_lease_).link->operations) {
    EXPECT_FALSE(operation.has_shrink());
  }
}

TEST_F(ControllerFamilies, APeerThatDoesNotLetGoIsEnded) {
  UseBoth();
  const auto more = Malloc(first_, 2 * kMiB);
  Refuse(&v1::DaemonMessage::has_map_peer, absl::InternalError("no"));
  Free(first_, more->address);
  ASSERT_EQ(processes_.killed.size(), 1u);
  EXPECT_EQ(processes_.killed.front().first.value, second_lease_->gpu);
}

TEST_F(ControllerFamilies, AnotherFunctionTakesEitherGpuOnlyWhenBothAreGivenBack) {
  UseBoth();
  Client a = Connect("token-a");
  ASSERT_EQ(Malloc(a, 40 * kMiB)->error, 0);
  Acquire("a");
  loop_.Advance(std::chrono::seconds(1));
  Settle();
  EXPECT_TRUE(GiveBack(first_));
  EXPECT_FALSE(TakeLease(a));
  EXPECT_TRUE(GiveBack(second_));
  EXPECT_TRUE(TakeLease(a));
}

TEST_F(ControllerFamilies, NobodyReachesAnImageThatHasLeft) {
  UseBoth();
  Say(first_, wire::LeaseReturned{first_lease_->lease_id});
  Say(second_, wire::LeaseReturned{second_lease_->lease_id});
  // Each needs a whole GPU.
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  ASSERT_EQ(Malloc(a, 48 * kMiB)->error, 0);
  ASSERT_EQ(Malloc(b, 48 * kMiB)->error, 0);
  ASSERT_EQ(Malloc(first_, 16 * kMiB)->error, 0);
  ASSERT_EQ(Malloc(second_, 16 * kMiB)->error, 0);
  Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  Acquire("b");
  ASSERT_TRUE(TakeLease(b));
  EXPECT_TRUE(executors_[0].reached.empty());
  EXPECT_TRUE(executors_[1].reached.empty());
}

TEST_F(ControllerFamilies, ADeviceThatComesLaterJoinsTheLease) {
  Say(first_, wire::LeaseRequest{});
  const auto lease = TakeLease(first_);
  ASSERT_TRUE(lease);
  second_ = ConnectDevice("token-pair", first_, 1);
  Say(second_, wire::LeaseRequest{});
  const auto joined = TakeLease(second_);
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->lease_id, lease->lease_id);
  // And comes back to it when it was idle for a while.
  Say(second_, wire::LeaseReturned{joined->lease_id});
  Say(second_, wire::LeaseRequest{});
  EXPECT_TRUE(TakeLease(second_));
}

TEST_F(ControllerFamilies, WithOneExecutorBothLoseTheLease) {
  UseBoth();
  KillExecutor(second_lease_->gpu);
  EXPECT_TRUE(first_.link->Take<wire::LeaseLost>());
  EXPECT_TRUE(second_.link->Take<wire::LeaseLost>());
  EXPECT_TRUE(ExecutorOf(first_lease_).leases.empty());
  EXPECT_TRUE(ExecutorOf(first_lease_).reached.empty()) << "it holds a dead process's memory";
}

TEST_F(ControllerFamilies, CloseTogetherWhenAllWorkHasEnded) {
  UseBoth();
  Hold(&v1::DaemonMessage::has_end_lease);
  Disconnect(second_);
  EXPECT_TRUE(first_.link->closed);
  EXPECT_EQ(executors_[0].sessions.size(), 2u) << "their kernels may use each other's memory";
  answers_ = nullptr;
  Settle();
  EXPECT_TRUE(executors_[0].sessions.empty());
  EXPECT_TRUE(executors_[1].sessions.empty());
  EXPECT_EQ(controller_->Snapshot().sessions, 0u);
}

}  // namespace
}  // namespace torpor::server
