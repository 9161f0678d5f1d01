#include "tests/server/controller/controller_harness.h"

// What is configured of the scheduler, and what it needs to know of the node.
namespace torpor::server {
namespace {

void Strict(Config& config) {
  config.policy = "fifo";
  config.refuses_too_late = true;
  config.functions["b"].max_waiting = 1;
  config.functions["b"].deadline = std::chrono::milliseconds(100);
}

class StrictControllerTest : public ControllerHarness {
 protected:
  StrictControllerTest() : ControllerHarness(1, "map", Strict) { StartExecutor(0); }
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
