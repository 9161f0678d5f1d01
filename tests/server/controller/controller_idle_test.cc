#include <gtest/gtest.h>

#include "tests/server/controller/controller_harness.h"

// What is written back while GPUs have nothing to do.
namespace torpor::server {
namespace {

constexpr Duration kIdle = std::chrono::seconds(1);

class ControllerIdleTest : public ControllerHarness {
 protected:
  explicit ControllerIdleTest(int gpus = 1) : ControllerHarness(gpus) { StartExecutor(0); }

  // With memory that a request of the function may have changed.
  Client ConnectChanged(const std::string& function) {
    Client client = Connect("token-" + function);
    EXPECT_EQ(Malloc(client, kMiB)->error, 0);
    Serve(function, client);  // saved as the first
    Serve(function, client);
    return client;
  }
  void PassTime(Duration duration) {
    loop_.Advance(duration);
    Settle();
  }
  // Write-backs of parts, for which `answers_` are asked.
  static bool IsPart(const v1::DaemonMessage& operation) {
    return operation.has_swap_out() && operation.swap_out().max_bytes() > 0;
  }
  void HoldParts() {
    answers_ = [](const v1::DaemonMessage& operation) {
      return IsPart(operation) ? std::nullopt : std::optional(absl::OkStatus());
    };
  }
  bool IsPartHeld() {
    return !executors_[0].link->operations.empty() &&
           IsPart(executors_[0].link->operations.front());
  }
};

TEST_F(ControllerIdleTest, WhatARequestChangedIsWrittenBackAfterTheIdleTimeAndOnce) {
  const Client client = ConnectChanged("a");
  PassTime(kIdle / 2);
  EXPECT_EQ(counts_.idle_write_backs, 0);
  PassTime(kIdle);
  EXPECT_EQ(counts_.idle_write_backs, 1);
  EXPECT_EQ(executors_[0].resident.size(), 1u);
  PassTime(3 * kIdle);
  EXPECT_EQ(counts_.idle_write_backs, 1);
  Serve("a", client);
  PassTime(2 * kIdle);
  EXPECT_EQ(counts_.idle_write_backs, 2);
}

TEST_F(ControllerIdleTest, PartByPartUntilNothingIsLeft) {
  int parts = 0;
  has_more_ = [&](const v1::DaemonMessage& operation) {
    if (IsPart(operation)) ++parts;
    return parts < 3;
  };
  ConnectChanged("a");
  PassTime(kIdle);
  EXPECT_EQ(counts_.idle_write_backs, 3);
}

TEST_F(ControllerIdleTest, ARequestWaitsForOnePartOnly) {
  const Client a = ConnectChanged("a");
  HoldParts();
  has_more_ = IsPart;
  PassTime(kIdle);
  ASSERT_TRUE(IsPartHeld());
  Acquire("a");
  EXPECT_FALSE(TakeLease(a)) << "its image is being read";
  answers_ = nullptr;
  Settle();
  EXPECT_TRUE(TakeLease(a));
  EXPECT_EQ(counts_.idle_write_backs, 1) << "the rest can wait";
}

TEST_F(ControllerIdleTest, ARequestForAnotherFunctionDoesNotWait) {
  const Client a = ConnectChanged("a");
  const Client b = ConnectChanged("b");
  HoldParts();
  PassTime(kIdle);
  ASSERT_TRUE(IsPartHeld());
  executors_[0].link->operations.pop_front();  // the executor has other workers
  Acquire("b");
  EXPECT_TRUE(TakeLease(b));
}

TEST_F(ControllerIdleTest, AnImageThatIsStillComingIsWaitedFor) {
  Client a = ConnectChanged("a");
  std::optional<absl::Status> evicted;
  controller_->Administer({.kind = AdminRequest::Kind::kEvict, .function = "a"},
                          [&](const absl::Status& status) { evicted = status; });
  Settle();
  ASSERT_TRUE(evicted && evicted->ok());
  completes_swap_ins_ = false;
  Serve("a", a);
  PassTime(2 * kIdle);
  EXPECT_EQ(counts_.idle_write_backs, 0);
  CompleteSwapIn(0, a);
  EXPECT_EQ(counts_.idle_write_backs, 1);
}

TEST_F(ControllerIdleTest, AnImageThatGoesBeforeItHasComeIsNotWaitedFor) {
  Client a = ConnectChanged("a");
  controller_->Administer({.kind = AdminRequest::Kind::kEvict, .function = "a"},
                          [](const absl::Status&) {});
  Settle();
  completes_swap_ins_ = false;
  Serve("a", a);
  PassTime(2 * kIdle);
  Disconnect(a);
  completes_swap_ins_ = true;
  ConnectChanged("a");
  PassTime(2 * kIdle);
  EXPECT_EQ(counts_.idle_write_backs, 1);
}

TEST_F(ControllerIdleTest, AStatelessFunctionsChangesAreNotWrittenBack) {
  ConnectChanged("b");
  PassTime(2 * kIdle);
  EXPECT_EQ(counts_.idle_write_backs, 0);
}

TEST_F(ControllerIdleTest, AFunctionThatHasGoneIsNotWrittenBack) {
  const Client a = ConnectChanged("a");
  Disconnect(a);
  PassTime(2 * kIdle);
  EXPECT_EQ(counts_.idle_write_backs, 0);
}

TEST_F(ControllerIdleTest, AnExecutorThatDiesInTheMiddleIsNotMissed) {
  const Client a = ConnectChanged("a");
  HoldParts();
  PassTime(kIdle);
  ASSERT_TRUE(IsPartHeld());
  KillExecutor(0);
  answers_ = nullptr;
  StartExecutor(0);
  Serve("a", a);
  PassTime(2 * kIdle);
  EXPECT_EQ(counts_.idle_write_backs, 1);
}

TEST_F(ControllerIdleTest, WhatFailsIsTriedAgainAfterTheNextLease) {
  const Client client = ConnectChanged("a");
  int parts = 0;
  answers_ = [&](const v1::DaemonMessage& operation) {
    if (!IsPart(operation)) return std::optional(absl::OkStatus());
    ++parts;
    return std::optional<absl::Status>(absl::InternalError("no copy"));
  };
  PassTime(3 * kIdle);
  EXPECT_EQ(parts, 1);
  EXPECT_TRUE(processes_.killed.empty());
  Serve("a", client);
  PassTime(kIdle);
  EXPECT_EQ(parts, 2);
}

class ControllerIdlePairTest : public ControllerIdleTest {
 protected:
  ControllerIdlePairTest() : ControllerIdleTest(2) { StartExecutor(1); }
};

TEST_F(ControllerIdlePairTest, WhatAnotherGpuReachesIsNotWrittenBack) {
  Client first = Connect("token-pair");
  Client second = ConnectDevice("token-pair", first, 1);
  EXPECT_EQ(Malloc(first, kMiB)->error, 0);
  const auto serve = [&] {
    const RequestId request = Acquire("pair");
    EXPECT_TRUE(TakeLease(first));
    EXPECT_TRUE(TakeLease(second));
    Release(request);
    EXPECT_TRUE(GiveBack(first));
    EXPECT_TRUE(GiveBack(second));
  };
  serve();
  serve();
  PassTime(kIdle);
  EXPECT_EQ(counts_.idle_write_backs, 0);
}

}  // namespace
}  // namespace torpor::server
