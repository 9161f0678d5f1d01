// Spare executors: parked until they take over.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/server/controller/controller_harness.h"

namespace torpor::server {
namespace {

constexpr std::int64_t kSparePid = 7777;
constexpr std::int64_t kOwnerPid = 8888;

class ControllerSpares : public ControllerHarness {
 protected:
  // The executor of GPU 0, with the GPU's memory in another process.
  void StartServing() {
    executors_[0] = {};
    executors_[0].epoch = next_epoch_++;
    controller_->OnExecutorStarting(kGpu, executors_[0].epoch);
    executors_[0].link = std::make_shared<FakeExecutorLink>();
    v1::ExecutorMessage message = Registration(0, executors_[0].epoch);
    message.mutable_register_()->set_pool_owner_pid(kOwnerPid);
    controller_->OnExecutorMessage(executors_[0].link, message);
    Settle();
  }
  void StartSpare() {
    spare_ = {};
    spare_.epoch = next_epoch_++;
    controller_->OnSpareStarting(kGpu, spare_.epoch);
  }
  void RegisterSpare(const Executor& spare) {
    v1::ExecutorMessage message = Registration(0, spare.epoch);
    message.mutable_register_()->set_pid(kSparePid);
    message.mutable_register_()->set_pool_owner_pid(kOwnerPid);
    message.mutable_register_()->set_socket_path("/nowhere/executor-0b.sock");
    controller_->OnExecutorMessage(spare.link, message);
    Settle();
  }
  void RegisterSpare() {
    spare_.link = std::make_shared<FakeExecutorLink>();
    RegisterSpare(spare_);
  }
  // The supervisor has seen the executor's end, and goes on with the spare.
  void DieAndPromote() {
    const Executor dead = std::exchange(executors_[0], spare_);
    controller_->OnExecutorClosed(dead.link);
    controller_->OnExecutorExited(kGpu, dead.epoch, SIGKILL);
    controller_->OnExecutorStarting(kGpu, spare_.epoch);
    Settle();
  }
  GpuSnapshot gpu() { return controller_->Snapshot().gpus.at(0); }

  static constexpr GpuIndex kGpu{0};
  Executor spare_;
};

TEST_F(ControllerSpares, AreKeptWhereTheMemoryHasAnOwner) {
  StartServing();
  EXPECT_EQ(processes_.with_spare, std::set{kGpu});
  EXPECT_EQ(gpu().pool_owner_pid, kOwnerPid);
}

TEST_F(ControllerSpares, AreNotKeptWhereExecutorsOwnTheMemory) {
  StartExecutor(0);
  EXPECT_TRUE(processes_.with_spare.empty());
}

TEST_F(ControllerSpares, DoNothingUntilTheyTakeOver) {
  StartServing();
  StartSpare();
  EXPECT_EQ(gpu().spare_pid, 0);
  RegisterSpare();
  EXPECT_EQ(gpu().spare_pid, kSparePid);
  Client a = Connect("token-a");
  Malloc(a, 10 * kMiB);
  Serve("a", a);
  EXPECT_TRUE(spare_.link->operations.empty());
  EXPECT_FALSE(spare_.link->closed);
}

TEST_F(ControllerSpares, LearnOfTheSessionsWhenTheyTakeOver) {
  StartServing();
  StartSpare();
  RegisterSpare();
  Client a = Connect("token-a");
  Malloc(a, 10 * kMiB);
  Serve("a", a);
  const RequestId request = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  DieAndPromote();
  EXPECT_TRUE(outcome(request).lost) << "as with any dead executor";
  Release(request);
  EXPECT_EQ(gpu().executor_pid, kSparePid);
  EXPECT_EQ(gpu().spare_pid, 0);
  EXPECT_EQ(gpu().state, "ready");
  a.link->Take<wire::LeaseRevoke>();
  const RequestId next = Acquire("a");
  const auto lease = TakeLease(a);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->executor_socket, "/nowhere/executor-0b.sock");
  Release(next);
}

TEST_F(ControllerSpares, MayTakeOverBeforeTheyAreReady) {
  StartServing();
  StartSpare();
  DieAndPromote();
  EXPECT_EQ(gpu().state, "starting");
  spare_.link = executors_[0].link = std::make_shared<FakeExecutorLink>();
  RegisterSpare(spare_);
  EXPECT_EQ(gpu().state, "ready");
  EXPECT_EQ(gpu().executor_pid, kSparePid);
}

TEST_F(ControllerSpares, OfAnEarlierTorpordAreKnownByTheirProcess) {
  StartServing();
  spare_.epoch = next_epoch_++;
  controller_->OnSpareAdopted(kGpu, spare_.epoch, kSparePid);
  Executor old = {};
  old.epoch = 424242;  // of its start
  old.link = spare_.link = std::make_shared<FakeExecutorLink>();
  RegisterSpare(old);
  EXPECT_EQ(gpu().spare_pid, kSparePid);
  DieAndPromote();
  EXPECT_EQ(gpu().executor_pid, kSparePid);
}

TEST_F(ControllerSpares, AStrangerIsNoSpare) {
  StartServing();
  StartSpare();
  Executor stranger = {};
  stranger.epoch = spare_.epoch + 100;
  stranger.link = std::make_shared<FakeExecutorLink>();
  RegisterSpare(stranger);
  EXPECT_TRUE(stranger.link->closed);
  EXPECT_EQ(gpu().spare_pid, 0);
}

TEST_F(ControllerSpares, AnEndOfTheSpareCostsNothingElse) {
  StartServing();
  StartSpare();
  RegisterSpare();
  Client a = Connect("token-a");
  const RequestId request = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  controller_->OnExecutorClosed(spare_.link);
  ASSERT_EQ(processes_.killed.size(), 1u) << "what has no stream is of no use";
  EXPECT_EQ(processes_.killed.front(), std::pair(kGpu, spare_.epoch));
  EXPECT_EQ(gpu().spare_pid, 0);
  controller_->OnSpareExited(kGpu, spare_.epoch);
  Settle();
  EXPECT_TRUE(IsRunning(request));
  EXPECT_EQ(counts_.losses, 0);
  Release(request);
}

}  // namespace
}  // namespace torpor::server
