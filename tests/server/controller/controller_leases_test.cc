#include "tests/server/controller/controller_harness.h"

namespace torpor::server {
namespace {

class ControllerLeases : public ControllerHarness {
 protected:
  // A request of b that has waited long enough for the implicit lease of `a` to be revoked.
  RequestId AcquireAgainstImplicitLease(const Client& a) {
    Say(a, wire::LeaseRequest{});
    EXPECT_TRUE(TakeLease(a));
    const RequestId request = Acquire("b");
    loop_.Advance(std::chrono::milliseconds(10));
    Settle();
    return request;
  }
};
class ControllerTwoGpus : public ControllerHarness {
 protected:
  ControllerTwoGpus() : ControllerHarness(2) {}
};

TEST_F(ControllerLeases, ARequestGetsAndGivesBackItsLease) {
  StartExecutor(0);
  Client a = Connect("token-a");
  ASSERT_EQ(Malloc(a, 10 * kMiB)->error, 0);
  const RequestId request = Acquire("a");
  EXPECT_FALSE(outcome(request).grant) << "not before the client knows";
  const auto lease = TakeLease(a);
  ASSERT_TRUE(lease);
  EXPECT_TRUE(lease->is_explicit);
  EXPECT_EQ(lease->gpu, 0);
  EXPECT_EQ(lease->executor_epoch, executors_[0].epoch);
  EXPECT_EQ(lease->executor_socket, "/nowhere/executor-0.sock");
  ASSERT_TRUE(IsRunning(request));
  EXPECT_EQ((*outcome(request).grant)->source, SwapSource::kHost);
  EXPECT_EQ(executors_[0].leases.size(), 1u);
  Release(request);
  EXPECT_TRUE(GiveBack(a));
  EXPECT_TRUE(executors_[0].leases.empty());
  EXPECT_EQ(counts_.leases, 1);
}

TEST_F(ControllerLeases, ResidentImagesNeedNoSwap) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Malloc(a, 10 * kMiB);
  Serve("a", a);
  const RequestId request = Acquire("a");
  TakeLease(a);
  EXPECT_EQ((*outcome(request).grant)->source, SwapSource::kResident);
  EXPECT_EQ(counts_.swaps_in, 1);
}

TEST_F(ControllerLeases, TwoImagesThatDoNotFitTakeTurns) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  Malloc(a, 40 * kMiB);
  Malloc(b, 40 * kMiB);
  for (int round = 0; round < 3; ++round) {
    Serve("a", a);
    Serve("b", b);
  }
  EXPECT_EQ(counts_.swaps_in, 6);
  EXPECT_EQ(counts_.evictions, 5);
  EXPECT_EQ(controller_->Snapshot().gpus[0].used_bytes, 40 * kMiB);
}

TEST_F(ControllerLeases, UnknownFunction) {
  StartExecutor(0);
  EXPECT_EQ(Failure(Acquire("nobody")), absl::StatusCode::kNotFound);
}

TEST_F(ControllerLeases, AFunctionMayComeToCudaWithinItsFirstRequest) {
  StartExecutor(0);
  const RequestId request = Acquire("a");
  ASSERT_TRUE(IsRunning(request));
  EXPECT_EQ(controller_->Snapshot().gpus[0].leased_to, "a");
  Client a = Connect("token-a");
  ASSERT_EQ(Malloc(a, 10 * kMiB)->error, 0);
  Say(a, wire::LeaseRequest{});
  const auto lease = TakeLease(a);
  ASSERT_TRUE(lease);
  EXPECT_TRUE(lease->is_explicit);
  EXPECT_EQ(executors_[0].resident.size(), 1u);
  Release(request);
  EXPECT_TRUE(GiveBack(a));
  EXPECT_EQ(counts_.leases, 1);
  EXPECT_EQ(counts_.swaps_out, 1) << "the model that it has loaded is saved";
  Serve("a", a);
  EXPECT_EQ(counts_.swaps_out, 1);
}

TEST_F(ControllerLeases, AFunctionMayNeverComeToCuda) {
  StartExecutor(0);
  const Client b = Connect("token-b");
  const RequestId first = Acquire("c");
  const RequestId second = Acquire("c");  // max_in_flight: 2
  EXPECT_TRUE(IsRunning(first));
  EXPECT_TRUE(IsRunning(second));
  const RequestId other = Acquire("b");
  EXPECT_FALSE(b.link->Take<wire::LeaseGrant>());
  Release(first);
  Release(second);
  EXPECT_EQ(counts_.leases, 1);
  EXPECT_TRUE(TakeLease(b));
  EXPECT_TRUE(IsRunning(other));
  const FunctionSnapshot c = controller_->Snapshot().functions.at(2);
  EXPECT_EQ(c.name, "c");
  EXPECT_TRUE(c.resident_gpus.empty()) << "it has no memory to be there";
}

TEST_F(ControllerLeases, ALateSessionThatDoesNotFitIsTold) {
  StartExecutor(0);
  const RequestId request = Acquire("a");
  const Client a = Connect("token-a");
  Refuse(&v1::DaemonMessage::has_swap_in, absl::InternalError("no copy engine"));
  Say(a, wire::LeaseRequest{});
  const auto denied = a.link->Take<wire::LeaseLost>();
  ASSERT_TRUE(denied);
  EXPECT_TRUE(denied->sticky);
  EXPECT_TRUE(IsRunning(request));
  Release(request);
  EXPECT_EQ(controller_->Snapshot().gpus[0].leased_to, "");
}

TEST_F(ControllerLeases, ALostSessionHoldsNobodyUp) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  Say(a, wire::LeaseRequest{});
  ASSERT_TRUE(TakeLease(a));
  KillExecutor(0);
  ASSERT_TRUE(a.link->Take<wire::LeaseLost>()->sticky);
  StartExecutor(0);
  const RequestId request = Acquire("a");
  EXPECT_FALSE(a.link->Take<wire::LeaseGrant>()) << "it would not answer";
  EXPECT_TRUE(executors_[0].resident.empty());
  EXPECT_TRUE(IsRunning(request)) << "its process tells its own error";
  const Client fresh = Connect("token-a");
  Release(request);
  const RequestId next = Acquire("a");
  EXPECT_TRUE(TakeLease(fresh));
  EXPECT_TRUE(IsRunning(next));
  Release(next);
  EXPECT_TRUE(GiveBack(fresh));
  Serve("b", b);
}

TEST_F(ControllerLeases, AWishForALeaseIsForgottenWithItsSession) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  const RequestId request = AcquireAgainstImplicitLease(a);
  Hold(&v1::DaemonMessage::has_swap_out);
  ASSERT_TRUE(GiveBack(a));      // but it is not saved yet
  Say(a, wire::LeaseRequest{});  // waits behind the request
  KillExecutor(0);
  ASSERT_TRUE(a.link->Take<wire::LeaseLost>()->sticky);
  answers_ = nullptr;
  StartExecutor(0);
  ASSERT_TRUE(TakeLease(b));
  Release(request);
  ASSERT_TRUE(GiveBack(b));
  EXPECT_FALSE(a.link->Take<wire::LeaseGrant>());
  EXPECT_EQ(controller_->Snapshot().gpus[0].leased_to, "");
}

TEST_F(ControllerLeases, GivesUpInTime) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  const RequestId running = Acquire("a");
  TakeLease(a);
  const RequestId late = Acquire("b", std::chrono::seconds(1));
  loop_.Advance(std::chrono::seconds(2));
  Settle();
  EXPECT_EQ(Failure(late), absl::StatusCode::kDeadlineExceeded);
  Release(late);
  EXPECT_TRUE(IsRunning(running));
  Release(running);
  GiveBack(a);
  EXPECT_FALSE(b.link->Take<wire::LeaseGrant>());
}

TEST_F(ControllerLeases, WhereNoGpuServesThatIsSaid) {
  const RequestId request = Acquire("a", std::chrono::seconds(1));
  loop_.Advance(std::chrono::seconds(2));
  ASSERT_TRUE(outcome(request).grant);
  EXPECT_EQ(outcome(request).grant->status(),
            absl::DeadlineExceededError("no GPU serves; torpord's log says why"));
}

TEST_F(ControllerLeases, ReleaseWhileQueuedCancels) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  Acquire("a");
  TakeLease(a);
  const RequestId gone = Acquire("b");
  Release(gone);
  EXPECT_EQ(Failure(gone), absl::StatusCode::kCancelled);
}

TEST_F(ControllerLeases, ReleaseBeforeTheAcknowledgement) {
  StartExecutor(0);
  Client a = Connect("token-a");
  const RequestId gone = Acquire("a");
  Release(gone);
  EXPECT_EQ(Failure(gone), absl::StatusCode::kCancelled);
  EXPECT_TRUE(TakeLease(a));
  EXPECT_TRUE(GiveBack(a));
  Serve("a", a);
}

TEST_F(ControllerLeases, ProgramsGetImplicitLeasesAndAreSaved) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Malloc(a, 10 * kMiB);
  Say(a, wire::LeaseRequest{});
  const auto lease = TakeLease(a);
  ASSERT_TRUE(lease);
  EXPECT_FALSE(lease->is_explicit);
  EXPECT_EQ(counts_.swaps_out, 0);
  Say(a, wire::LeaseReturned{lease->lease_id});  // idle
  EXPECT_EQ(counts_.swaps_out, 1);               // the checkpoint
  EXPECT_EQ(executors_[0].resident.size(), 1u);
  Serve("a", a);
  EXPECT_EQ(counts_.swaps_out, 1);
}

TEST_F(ControllerLeases, RequestEndsAnImplicitLease) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  const RequestId request = AcquireAgainstImplicitLease(a);
  EXPECT_TRUE(GiveBack(a));
  Say(a, wire::LeaseRequest{});  // goes on behind the request
  EXPECT_TRUE(TakeLease(b));
  EXPECT_TRUE(IsRunning(request));
  EXPECT_FALSE(a.link->Take<wire::LeaseGrant>());
  Release(request);
  GiveBack(b);
  EXPECT_TRUE(TakeLease(a));
}

TEST_F(ControllerLeases, AskingAgainWhileTheLastLeaseEnds) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Say(a, wire::LeaseRequest{});
  const auto lease = TakeLease(a);
  Hold(&v1::DaemonMessage::has_end_lease);
  Say(a, wire::LeaseReturned{lease->lease_id});
  Say(a, wire::LeaseRequest{});
  EXPECT_FALSE(a.link->Take<wire::LeaseGrant>());
  answers_ = nullptr;
  Settle();
  EXPECT_TRUE(TakeLease(a));
}

TEST_F(ControllerLeases, ExplicitLeaseServesTheProgramsWishToo) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  const RequestId first = Acquire("b");
  TakeLease(b);
  const RequestId second = Acquire("a");
  Say(a, wire::LeaseRequest{});
  Release(first);
  GiveBack(b);
  const auto lease = TakeLease(a);
  ASSERT_TRUE(lease);
  EXPECT_TRUE(lease->is_explicit);
  Release(second);
  GiveBack(a);
  EXPECT_FALSE(a.link->Take<wire::LeaseGrant>()) << "nobody waits any more";
}

TEST_F(ControllerLeases, ShimThatDoesNotAcknowledgeIsCutOff) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  const RequestId request = Acquire("a", std::chrono::hours(1));
  ASSERT_TRUE(a.link->Take<wire::LeaseGrant>());
  const RequestId other = Acquire("b", std::chrono::hours(1));
  loop_.Advance(std::chrono::minutes(1));
  Settle();
  EXPECT_TRUE(a.link->closed);
  EXPECT_EQ(Failure(request), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(TakeLease(b));
  EXPECT_TRUE(IsRunning(other));
}

TEST_F(ControllerLeases, ShimThatDoesNotReturnIsCutOff) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  const RequestId request = Acquire("a");
  TakeLease(a);
  Release(request);
  ASSERT_TRUE(a.link->Take<wire::LeaseRevoke>());
  const RequestId other = Acquire("b", std::chrono::hours(1));
  loop_.Advance(std::chrono::minutes(1));
  Settle();
  EXPECT_TRUE(a.link->closed);
  EXPECT_TRUE(TakeLease(b));
  EXPECT_TRUE(IsRunning(other));
}

TEST_F(ControllerLeases, RunsRequestsSideBySideWhereAllowed) {
  StartExecutor(0);
  Client c = Connect("token-c");  // max_in_flight: 2
  const RequestId first = Acquire("c");
  TakeLease(c);
  const RequestId second = Acquire("c");
  const RequestId third = Acquire("c");
  EXPECT_TRUE(IsRunning(second));
  EXPECT_FALSE(outcome(third).grant);
  Release(first);
  EXPECT_TRUE(IsRunning(third));
  Release(second);
  EXPECT_FALSE(c.link->Take<wire::LeaseRevoke>());
  Release(third);
  EXPECT_TRUE(GiveBack(c));
}

TEST_F(ControllerLeases, AProcessThatDiesFailsWhatItHasNotTaken) {
  StartExecutor(0);
  const Client c = Connect("token-c");
  const RequestId first = Acquire("c");
  const RequestId second = Acquire("c");
  const RequestId third = Acquire("c");  // waits for one of them
  Disconnect(c);
  EXPECT_EQ(Failure(first), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Failure(second), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(IsRunning(third)) << "its server may come to CUDA again";
}

TEST_F(ControllerLeases, AllProcessesOfAFunctionShareItsLease) {
  StartExecutor(0);
  Client one = Connect("token-a");
  Client two = Connect("token-a");
  Malloc(one, 4 * kMiB);
  const RequestId request = Acquire("a");
  ASSERT_TRUE(TakeLease(one));
  EXPECT_FALSE(outcome(request).grant);
  ASSERT_TRUE(TakeLease(two));
  EXPECT_TRUE(IsRunning(request));
  // A third comes while the request runs.
  Client three = Connect("token-a");
  Say(three, wire::LeaseRequest{});
  EXPECT_TRUE(TakeLease(three));
  Release(request);
  EXPECT_TRUE(GiveBack(one));
  EXPECT_TRUE(GiveBack(two));
  EXPECT_EQ(counts_.leases, 0);
  EXPECT_TRUE(GiveBack(three));
  EXPECT_EQ(counts_.leases, 1);
}

TEST_F(ControllerLeases, FailedSwapRefusesTheRequest) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Refuse(&v1::DaemonMessage::has_swap_in, absl::ResourceExhaustedError("no chunk"));
  EXPECT_EQ(Failure(Acquire("a")), absl::StatusCode::kUnavailable);
  answers_ = nullptr;
  Serve("a", a);
}

TEST_F(ControllerLeases, DrainWaitsForWhatRuns) {
  StartExecutor(0);
  Client a = Connect("token-a");
  const RequestId request = Acquire("a");
  TakeLease(a);
  bool is_idle = false;
  controller_->Drain([&] { is_idle = true; });
  EXPECT_FALSE(controller_->IsReady());
  EXPECT_EQ(Failure(Acquire("a")), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(is_idle);
  Release(request);
  EXPECT_TRUE(is_idle);
}

TEST_F(ControllerLeases, ShutdownAnswersWhoeverWaits) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  Acquire("a");
  TakeLease(a);
  const RequestId waiting = Acquire("b");
  controller_->Shutdown();
  EXPECT_EQ(Failure(waiting), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(a.link->closed);
  EXPECT_TRUE(executors_[0].link->operations.back().has_shutdown());
}

TEST_F(ControllerTwoGpus, ImagesMoveThroughTheHost) {
  StartExecutor(0);
  StartExecutor(1);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  Malloc(a, 40 * kMiB);
  Malloc(b, 8 * kMiB);
  Serve("a", a);  // on GPU 0: both are empty
  Serve("b", b);  // on GPU 1, which has more room
  const RequestId on_one = Acquire("b");
  TakeLease(b);
  const RequestId on_zero = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  Release(on_zero);
  GiveBack(a);
  Release(on_one);
  GiveBack(b);
  KillExecutor(1);
  Serve("b", b);  // moves to GPU 0
  StartExecutor(1);
  const RequestId busy = Acquire("a");
  TakeLease(a);
  const RequestId moved = Acquire("b");
  const auto lease = TakeLease(b);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->gpu, 1);
  EXPECT_EQ((*outcome(moved).grant)->source, SwapSource::kHost);
  EXPECT_EQ(executors_[0].resident.size(), 2u) << "a copy stays";
  Release(busy);
  Release(moved);
}

}  // namespace
}  // namespace torpor::server
