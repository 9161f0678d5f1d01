#include <gmock/gmock.h>

#include "server/controller/model/cuda_errors.h"
#include "tests/server/controller/controller_harness.h"

namespace torpor::server {
namespace {

class ControllerExecutors : public ControllerHarness {};
class ControllerExecutorPair : public ControllerHarness {
 protected:
  ControllerExecutorPair() : ControllerHarness(2) {}
};

TEST_F(ControllerExecutors, OnlyWhomTheSupervisorStarted) {
  executors_[0].epoch = 12345;
  Register(0);
  EXPECT_TRUE(executors_[0].link->closed);
  executors_[7].epoch = 1;
  Register(7);
  EXPECT_TRUE(executors_[7].link->closed);
}

TEST_F(ControllerExecutors, DeathInMidRequestIsTold) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Malloc(a, 10 * kMiB);
  Serve("a", a);
  const RequestId request = Acquire("a");
  const auto lease = TakeLease(a);
  KillExecutor(0);
  ASSERT_TRUE(outcome(request).lost);
  EXPECT_EQ(outcome(request).lost->code(), absl::StatusCode::kUnavailable);
  const auto lost = a.link->Take<wire::LeaseLost>();
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->lease_id, lease->lease_id);
  EXPECT_EQ(lost->error, kCudaErrorDevicesUnavailable);
  EXPECT_FALSE(lost->sticky);
  Release(request);
  // The client hears that the failed lease is over.
  EXPECT_EQ(a.link->Take<wire::LeaseRevoke>()->lease_id, lease->lease_id);

  StartExecutor(0);
  Serve("a", a);
  EXPECT_EQ(counts_.losses, 1);
}

TEST_F(ControllerExecutors, ALeaseIsConfirmedByItsExecutorOrLost) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Serve("a", a);
  const RequestId request = Acquire("a");
  TakeLease(a);
  int confirmed = 0;
  controller_->ConfirmLease(request, [&] { ++confirmed; });
  EXPECT_EQ(confirmed, 0) << "not before the executor has answered";
  Settle();
  EXPECT_EQ(confirmed, 1);
  EXPECT_FALSE(outcome(request).lost);

  // Dead, but nobody has noticed yet.
  answers_ = [](const v1::DaemonMessage&) { return std::nullopt; };
  controller_->ConfirmLease(request, [&] {
    EXPECT_TRUE(outcome(request).lost) << "first the bad news";
    ++confirmed;
  });
  Settle();
  EXPECT_EQ(confirmed, 1);
  KillExecutor(0);
  EXPECT_EQ(confirmed, 2);
  controller_->ConfirmLease(request, [&] { ++confirmed; });
  EXPECT_EQ(confirmed, 3) << "what is lost is not in doubt";
  Release(request);
}

TEST_F(ControllerExecutors, AnExecutorThatHangsDoesNotHoldUpAConfirmation) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Serve("a", a);
  const RequestId request = Acquire("a");
  TakeLease(a);
  answers_ = [](const v1::DaemonMessage&) { return std::nullopt; };
  int confirmed = 0;
  controller_->ConfirmLease(request, [&] { ++confirmed; });
  loop_.Advance(std::chrono::milliseconds(900));
  EXPECT_EQ(confirmed, 0);
  loop_.Advance(std::chrono::milliseconds(200));
  EXPECT_EQ(confirmed, 1);
  KillExecutor(0);
  EXPECT_EQ(confirmed, 1);
  Release(request);
}

TEST_F(ControllerExecutors, DeathInTheFirstRequestMayCostTheModel) {
  StartExecutor(0);
  const Client a = Connect("token-a");
  const RequestId request = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  KillExecutor(0);
  EXPECT_TRUE(outcome(request).lost);
  const auto lost = a.link->Take<wire::LeaseLost>();
  ASSERT_TRUE(lost);
  EXPECT_TRUE(lost->sticky) << "what it loaded was never saved";
}

TEST_F(ControllerExecutors, DeathBeforeTheFunctionUsesItsGpuCostsNothing) {
  StartExecutor(0);
  const RequestId request = Acquire("a");
  const Client a = Connect("token-a");
  Hold(&v1::DaemonMessage::has_begin_lease);
  Say(a, wire::LeaseRequest{});
  KillExecutor(0);
  EXPECT_FALSE(outcome(request).lost);
  answers_ = nullptr;
  StartExecutor(0);
  const auto lease = TakeLease(a);
  ASSERT_TRUE(lease) << "it still waits for one";
  EXPECT_TRUE(lease->is_explicit) << "of the request that goes on";
  Release(request);
  Say(a, wire::LeaseReturned{lease->lease_id});
  Serve("a", a);
}

TEST_F(ControllerExecutors, SuccessorKnowsTheSessionsBeforeItServes) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Say(a, wire::HostAlloc{1, 4096});
  KillExecutor(0);
  const RequestId waiting = Acquire("a");
  EXPECT_FALSE(outcome(waiting).grant);
  StartExecutor(0);
  const auto& log = executors_[0].link->log;
  ASSERT_GE(log.size(), 4u);
  EXPECT_TRUE(log[0].has_open_session());
  EXPECT_TRUE(log[1].has_map_host());
  EXPECT_TRUE(log[2].has_swap_in());
  EXPECT_TRUE(TakeLease(a));
  EXPECT_TRUE(IsRunning(waiting));
}

TEST_F(ControllerExecutors, DeathBeforeTheAcknowledgementIsNotNoticed) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Serve("a", a);  // what it has loaded is saved
  const RequestId request = Acquire("a");
  ASSERT_TRUE(a.link->Take<wire::LeaseGrant>());
  KillExecutor(0);
  EXPECT_FALSE(outcome(request).grant);
  StartExecutor(0);
  EXPECT_TRUE(TakeLease(a));
  EXPECT_TRUE(IsRunning(request));
}

TEST_F(ControllerExecutors, DeathDuringASwap) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Hold(&v1::DaemonMessage::has_swap_in);
  const RequestId request = Acquire("a");
  KillExecutor(0);
  answers_ = nullptr;
  StartExecutor(0);
  EXPECT_TRUE(TakeLease(a));
  EXPECT_TRUE(IsRunning(request));
}

TEST_F(ControllerExecutors, UnsavedProgramsAreLostForGood) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  Say(b, wire::LeaseRequest{});
  Say(b, wire::LeaseReturned{TakeLease(b)->lease_id});
  Say(a, wire::LeaseRequest{});
  const auto lease = TakeLease(a);
  KillExecutor(0);
  const auto lost = a.link->Take<wire::LeaseLost>();
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->lease_id, lease->lease_id);
  EXPECT_TRUE(lost->sticky);
  EXPECT_FALSE(b.link->Take<wire::LeaseLost>()) << "was saved";
}

TEST_F(ControllerExecutors, DeathBeforeTheCheckpointIsLossToo) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Say(a, wire::LeaseRequest{});
  const auto lease = TakeLease(a);
  Hold(&v1::DaemonMessage::has_swap_out);
  Say(a, wire::LeaseReturned{lease->lease_id});
  KillExecutor(0);
  const auto lost = a.link->Take<wire::LeaseLost>();
  ASSERT_TRUE(lost);
  EXPECT_TRUE(lost->sticky);
}

// The session's files, as executors have them.
memory::Checkpoint CheckpointOf(const Repository& repository, const wire::HelloReply& hello) {
  return (*repository.Find(SessionId{hello.session_id}, hello.session_key))->checkpoint();
}

TEST_F(ControllerExecutors, ARequestWhoseWorkIsDoneAgainIsNotLost) {
  StartExecutor(0);
  Client c = Connect("token-c");
  EXPECT_TRUE(c.hello.replays);
  Malloc(c, 10 * kMiB);
  Serve("c", c);
  CheckpointOf(repository_, c.hello).Commit(17);
  const RequestId request = Acquire("c");
  const auto first = TakeLease(c);
  EXPECT_EQ(first->saved_command, 17u);
  EXPECT_FALSE(first->replays);
  KillExecutor(0);
  EXPECT_FALSE(outcome(request).lost);
  const auto lost = c.link->Take<wire::LeaseLost>();
  ASSERT_TRUE(lost);
  EXPECT_TRUE(lost->replays);
  EXPECT_FALSE(lost->sticky);
  StartExecutor(0);
  const auto second = TakeLease(c);
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->replays);
  EXPECT_EQ(second->saved_command, 17u);
  EXPECT_TRUE(IsRunning(request));
  Release(request);
  EXPECT_FALSE(outcome(request).lost);
  Say(c, wire::LeaseReturned{second->lease_id});
  const RequestId next = Acquire("c");
  EXPECT_FALSE(TakeLease(c)->replays);
  Release(next);
}

TEST_F(ControllerExecutors, TheClientHearsOfEachWriteBack) {
  StartExecutor(0);
  Client c = Connect("token-c");
  CheckpointOf(repository_, c.hello).Commit(5);
  Serve("c", c);  // the first lease is saved
  const auto saved = c.link->Take<wire::MemorySaved>();
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->saved_command, 5u);
  Client a = Connect("token-a");
  Serve("a", a);
  EXPECT_FALSE(a.link->Take<wire::MemorySaved>()) << "records nothing";
}

TEST_F(ControllerExecutors, WorkBetweenRequestsIsDoneAgainWithTheNextLease) {
  StartExecutor(0);
  Client c = Connect("token-c");
  Serve("c", c);
  Serve("c", c);
  KillExecutor(0);
  EXPECT_FALSE(c.link->Take<wire::LeaseLost>());
  StartExecutor(0);
  Acquire("c");
  EXPECT_TRUE(TakeLease(c)->replays);
}

TEST_F(ControllerExecutors, AnImageThatIsHalfWrittenIsLostForGood) {
  StartExecutor(0);
  Client c = Connect("token-c");
  Serve("c", c);
  Serve("c", c);
  CheckpointOf(repository_, c.hello).NoteOverwritten();
  KillExecutor(0);
  const auto lost = c.link->Take<wire::LeaseLost>();
  ASSERT_TRUE(lost);
  EXPECT_TRUE(lost->sticky);
}

TEST_F(ControllerExecutors, AnInterruptedWriteBackIsCompletedAfterTheLease) {
  StartExecutor(0);
  Client c = Connect("token-c");
  Serve("c", c);
  int write_backs = 0;
  answers_ = [&](const v1::DaemonMessage& message) -> std::optional<absl::Status> {
    if (message.has_swap_out() && !message.swap_out().drop()) ++write_backs;
    return absl::OkStatus();
  };
  Serve("c", c);
  EXPECT_EQ(write_backs, 0);
  CheckpointOf(repository_, c.hello).NoteOverwritten();
  Serve("c", c);
  EXPECT_EQ(write_backs, 1);
}

TEST_F(ControllerExecutors, AReplayThatFailsFailsTheRequest) {
  StartExecutor(0);
  Client c = Connect("token-c");
  Serve("c", c);
  const RequestId request = Acquire("c");
  TakeLease(c);
  KillExecutor(0);
  StartExecutor(0);
  c.link->Take<wire::LeaseLost>();
  ASSERT_TRUE(TakeLease(c));
  Say(c, wire::ReplayFailed{"a result differs"});
  ASSERT_TRUE(outcome(request).lost);
  EXPECT_THAT(std::string(outcome(request).lost->message()),
              ::testing::HasSubstr("a result differs"));
  EXPECT_TRUE(c.link->Take<wire::LeaseLost>()->sticky);
  Release(request);
  Settle();
  // The lease is over: others have the GPU.
  Client b = Connect("token-b");
  Serve("b", b);
}

TEST_F(ControllerExecutors, ContextLossIsTheCulpritsOwn) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  const RequestId request = Acquire("a");
  const auto lease = TakeLease(a);
  LoseContext(a, 700);
  const auto lost = a.link->Take<wire::LeaseLost>();
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->error, 700);
  EXPECT_TRUE(lost->sticky);
  KillExecutor(0);
  EXPECT_FALSE(a.link->Take<wire::LeaseLost>()) << "told once";
  EXPECT_FALSE(outcome(request).lost) << "it answers its request itself";
  Release(request);
  StartExecutor(0);
  Serve("b", b);
  EXPECT_FALSE(b.link->Take<wire::LeaseLost>());
  EXPECT_EQ(lease->gpu, 0);
}

TEST_F(ControllerExecutors, WorkThatFailingHardwareEndsIsReplayed) {
  StartExecutor(0);
  Client c = Connect("token-c");
  const RequestId request = Acquire("c");
  ASSERT_TRUE(TakeLease(c));
  LoseContext(c, 214);
  EXPECT_FALSE(c.link->Take<wire::LeaseLost>()) << "until the executor has ended";
  KillExecutor(0);
  const auto lost = c.link->Take<wire::LeaseLost>();
  ASSERT_TRUE(lost);
  EXPECT_TRUE(lost->replays);
  EXPECT_FALSE(lost->sticky);
  EXPECT_FALSE(outcome(request).lost);
}

TEST_F(ControllerExecutors, HangingExecutorIsKilled) {
  StartExecutor(0);
  Client a = Connect("token-a");
  answers_ = [](const v1::DaemonMessage&) { return std::nullopt; };
  Acquire("a", std::chrono::hours(1));
  loop_.Advance(std::chrono::minutes(3));
  ASSERT_FALSE(processes_.killed.empty());
  EXPECT_EQ(processes_.killed[0].first, GpuIndex{0});
}

TEST_F(ControllerExecutors, FailedSwapOutKillsTheExecutor) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  Malloc(a, 40 * kMiB);
  Malloc(b, 40 * kMiB);
  Serve("a", a);
  Refuse(&v1::DaemonMessage::has_swap_out, absl::InternalError("illegal address"));
  const RequestId request = Acquire("b");
  ASSERT_EQ(processes_.killed.size(), 1u);
  answers_ = nullptr;
  KillExecutor(0);
  StartExecutor(0);
  EXPECT_TRUE(TakeLease(b));
  EXPECT_TRUE(IsRunning(request));
}

TEST_F(ControllerExecutors, ALeaseThatDoesNotEndKeepsTheGpuUntilItIsRestarted) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  const RequestId request = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  const RequestId waiting = Acquire("b");
  Refuse(&v1::DaemonMessage::has_end_lease, absl::DeadlineExceededError("a kernel still runs"));
  Release(request);
  ASSERT_TRUE(GiveBack(a));
  ASSERT_EQ(processes_.killed.size(), 1u);
  EXPECT_FALSE(b.link->Take<wire::LeaseGrant>());
  KillExecutor(0);
  StartExecutor(0);
  EXPECT_TRUE(TakeLease(b));
  EXPECT_TRUE(IsRunning(waiting));
}

TEST_F(ControllerExecutorPair, ASwapIsForTheExecutorThatItWasDecidedFor) {
  StartExecutor(0);
  StartExecutor(1);
  const Client a = Connect("token-a");
  Hold(&v1::DaemonMessage::has_map_host);
  Say(a, wire::HostAlloc{1, 4096});  // what comes next waits for it
  const RequestId gone = Acquire("a");
  KillExecutor(0);
  Release(gone);
  StartExecutor(0);
  answers_ = nullptr;
  Settle();
  EXPECT_TRUE(executors_[0].resident.empty());
  EXPECT_EQ(executors_[1].resident.size(), 1u) << "what was decided after the death";
  Serve("a", a);
}

TEST_F(ControllerExecutorPair, QueueGoesToTheOther) {
  StartExecutor(0);
  StartExecutor(1);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  Acquire("a");
  ASSERT_EQ(TakeLease(a)->gpu, 0);
  const RequestId other = Acquire("b");
  ASSERT_EQ(TakeLease(b)->gpu, 1);
  Release(other);
  GiveBack(b);
  KillExecutor(0);
  const RequestId again = Acquire("b");
  ASSERT_EQ(TakeLease(b)->gpu, 1);
  EXPECT_TRUE(IsRunning(again));
  EXPECT_EQ(controller_->Snapshot().gpus[0].state, "lost");
  EXPECT_EQ(controller_->Snapshot().gpus[1].leased_to, "b");
}

TEST_F(ControllerExecutorPair, NewSessionsOpenOnTheLivingOnly) {
  StartExecutor(0);
  Client a = Connect("token-a");
  StartExecutor(1);
  EXPECT_EQ(executors_[1].sessions.size(), 1u);
  KillExecutor(0);
  Client b = Connect("token-b");
  EXPECT_EQ(executors_[1].sessions.size(), 2u);
  StartExecutor(0);
  EXPECT_EQ(executors_[0].sessions.size(), 2u);
}

}  // namespace
}  // namespace torpor::server
