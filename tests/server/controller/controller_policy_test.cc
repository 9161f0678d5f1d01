#include "tests/server/controller/controller_harness.h"

// What is configured of the scheduler, and what it needs to know of the node.
namespace torpor::server {
namespace {

void Strict(Config& config) {
  config.scheduling.policy = "fifo";
  config.scheduling.too_late = LateRequests::kRefuse;
  config.functions["b"].max_waiting = 1;
  config.functions["b"].deadline = std::chrono::milliseconds(100);
}

class StrictControllerTest : public ControllerHarness {
 protected:
  StrictControllerTest() : ControllerHarness(1, AddressMode::kMap, Strict) { StartExecutor(0); }

  // Of b's requests one is over, and it counts as missed.
  void ExpectOneMiss() {
    const ObjectiveSnapshot objective = controller_->Snapshot().functions.at(1).objective;
    EXPECT_EQ(objective.finished, 1u);
    EXPECT_EQ(objective.in_time, 0u);
  }
};

TEST_F(StrictControllerTest, AFullQueueRefuses) {
  const Client a = Connect("token-a");
  const RequestId running = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  const RequestId waiting = Acquire("b");
  EXPECT_EQ(Failure(Acquire("b")), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(outcome(waiting).grant);
  EXPECT_FALSE(outcome(Acquire("c")).grant);
  Release(running);
}

TEST_F(StrictControllerTest, WhatIsTooLateIsRefused) {
  const Client a = Connect("token-a");
  const RequestId running = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  const RequestId late = Acquire("b");
  loop_.Advance(std::chrono::milliseconds(101));
  Release(running);
  ASSERT_TRUE(GiveBack(a));
  EXPECT_EQ(Failure(late), absl::StatusCode::kOutOfRange);
}

TEST_F(StrictControllerTest, AnObjectiveChangesWhileTheNodeRuns) {
  Reconfigure([](Config& config) {
    config.functions["b"].deadline = std::chrono::seconds(5);
    config.functions["b"].max_waiting = 2;
  });
  const Client a = Connect("token-a");
  const Client b = Connect("token-b");
  const RequestId running = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  const RequestId waiting = Acquire("b");
  EXPECT_FALSE(outcome(Acquire("b")).grant);
  loop_.Advance(std::chrono::milliseconds(101));
  Release(running);
  ASSERT_TRUE(GiveBack(a));
  ASSERT_TRUE(TakeLease(b));
  EXPECT_TRUE(IsRunning(waiting));
}

TEST_F(StrictControllerTest, WhatIsServedInTimeCounts) {
  const Client b = Connect("token-b");
  const auto serve = [&](Duration time, scheduler::Ending ending) {
    const RequestId request = Acquire("b");
    ASSERT_TRUE(TakeLease(b));
    loop_.Advance(time);
    Release(request, ending);
    ASSERT_TRUE(GiveBack(b));
  };
  serve(std::chrono::milliseconds(50), scheduler::Ending::kAnswered);
  serve(std::chrono::milliseconds(50), scheduler::Ending::kCancelled);
  serve(std::chrono::milliseconds(50), scheduler::Ending::kFailed);
  serve(std::chrono::milliseconds(150), scheduler::Ending::kAnswered);
  const ObjectiveSnapshot objective = controller_->Snapshot().functions.at(1).objective;
  EXPECT_EQ(objective.finished, 3u);
  EXPECT_EQ(objective.in_time, 1u);
  EXPECT_FALSE(objective.is_compliant());
  EXPECT_FALSE(objective.required_count);  // first come, first served
}

TEST_F(StrictControllerTest, WhatLostItsGpuCountsAsMissed) {
  const Client b = Connect("token-b");
  const RequestId request = Acquire("b");
  ASSERT_TRUE(TakeLease(b));
  KillExecutor(0);
  ASSERT_TRUE(outcome(request).lost);
  Release(request, scheduler::Ending::kLost);
  ExpectOneMiss();
}

TEST_F(StrictControllerTest, WhatItsProcessDiedOfCountsAsMissed) {
  const Client b = Connect("token-b");
  const RequestId request = Acquire("b");
  ASSERT_TRUE(TakeLease(b));
  Disconnect(b);
  Release(request, scheduler::Ending::kFailed);
  ExpectOneMiss();
}

TEST_F(StrictControllerTest, ARequestThatMovesToAnotherLeaseCountsOnce) {
  const Client b = Connect("token-b");
  Serve("b", b);  // its memory has been saved once
  const RequestId request = Acquire("b");
  KillExecutor(0);
  EXPECT_FALSE(outcome(request).lost) << "it had not begun";
  StartExecutor(0);
  b.link->Take<wire::LeaseGrant>();
  ASSERT_TRUE(TakeLease(b));
  ASSERT_TRUE(IsRunning(request));
  Release(request);
  const ObjectiveSnapshot objective = controller_->Snapshot().functions.at(1).objective;
  EXPECT_EQ(objective.finished, 2u);
  EXPECT_EQ(objective.in_time, 2u);
}

void WithTenants(Config& config) {
  config.scheduling.policy = "fifo";
  config.tenants["mail"] = {.name = "mail", .weight = 3};
  config.tenants["web"] = {.name = "web", .weight = 1};
  config.functions["a"].tenant = "mail";
  config.functions["b"].tenant = "web";
}

class TenantsControllerTest : public ControllerHarness {
 protected:
  TenantsControllerTest() : ControllerHarness(1, AddressMode::kMap, WithTenants) {
    StartExecutor(0);
  }
};

TEST_F(TenantsControllerTest, TenantsThatWaitShareTheGpuByTheirWeights) {
  constexpr int kRuns = 40;
  const std::map<std::string, Client> clients = {{"a", Connect("token-a")},
                                                 {"b", Connect("token-b")}};
  std::map<std::string, RequestId> requests = {{"a", Acquire("a")}, {"b", Acquire("b")}};
  std::map<std::string, int> runs;
  for (int run = 0; run < kRuns; ++run) {
    const std::string name = TakeLease(clients.at("a")) ? "a" : "b";
    ASSERT_TRUE(name == "a" || TakeLease(clients.at("b")));
    ASSERT_TRUE(IsRunning(requests[name])) << name;
    ++runs[name];
    const RequestId ended = std::exchange(requests[name], Acquire(name));
    loop_.Advance(std::chrono::milliseconds(100));
    Release(ended);
    ASSERT_TRUE(GiveBack(clients.at(name)));
  }
  EXPECT_NEAR(runs["a"], kRuns * 0.75, 1);
}

class SwitchedControllerTest : public ControllerHarness {
 protected:
  SwitchedControllerTest() : ControllerHarness(3) {
    completes_swap_ins_ = false;
    // The emptiest is what is chosen where nobody is disturbed.
    for (int gpu = 0; gpu < 3; ++gpu) StartExecutor(gpu);
    a_ = Connect("token-a");
    b_ = Connect("token-b");
    EXPECT_TRUE(Malloc(a_, 4 * kMiB));
    EXPECT_TRUE(Malloc(b_, 4 * kMiB));
  }

  Client a_;
  Client b_;
};

// GPUs 0 and 1 are behind one switch.
TEST_F(SwitchedControllerTest, AFunctionIsPlacedWhereNoNeighboursImageComes) {
  Acquire("a");
  ASSERT_EQ(TakeLease(a_)->gpu, 0);
  Acquire("b");
  EXPECT_EQ(TakeLease(b_)->gpu, 2);
}

TEST_F(SwitchedControllerTest, AnImageThatHasArrivedDisturbsNobody) {
  Acquire("a");
  ASSERT_EQ(TakeLease(a_)->gpu, 0);
  CompleteSwapIn(0, a_);
  Acquire("b");
  EXPECT_EQ(TakeLease(b_)->gpu, 1);
}

}  // namespace
}  // namespace torpor::server
