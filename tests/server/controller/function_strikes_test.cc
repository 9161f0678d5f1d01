#include "server/controller/function_strikes.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <utility>

#include "server/broker/retry_after.h"
#include "tests/server/controller/controller_harness.h"

namespace torpor::server {
namespace {

using ::testing::HasSubstr;

class FunctionStrikesTest : public ControllerHarness {
 protected:
  void SetUp() override { StartExecutor(0); }

  // The executor dies, and another one is started.
  void EndExecutor(int signal) {
    const Executor dead = std::move(executors_[0]);
    executors_.erase(0);
    controller_->OnExecutorClosed(dead.link);
    controller_->OnExecutorExited(GpuIndex{0}, dead.epoch, signal);
    Settle();
    StartExecutor(0);
  }
  // The client, a new process, runs a request that ends so.
  void Break(const std::string& function, std::int32_t cuda_error) {
    Client client = Connect("token-" + function);
    const RequestId request = Acquire(function);
    TakeLease(client);
    LoseContext(client, cuda_error);
    EndExecutor(0);
    Release(request, scheduler::Ending::kFailed);
    Disconnect(client);
  }
  void CrashUnder(const std::string& function, int signal) {
    Client client = Connect("token-" + function);
    const RequestId request = Acquire(function);
    TakeLease(client);
    EndExecutor(signal);
    Release(request, scheduler::Ending::kLost);
    Disconnect(client);
  }
  FunctionSnapshot Of(const std::string& name) {
    for (const FunctionSnapshot& function : controller_->Snapshot().functions) {
      if (function.name == name) return function;
    }
    return {};
  }
};

TEST_F(FunctionStrikesTest, TheSecondFaultIsAnsweredByAPause) {
  Client b = Connect("token-b");
  Break("a", 700);
  EXPECT_EQ(Of("a").strikes, 1u);
  Serve("b", b);
  {
    Client a = Connect("token-a");
    Serve("a", a);
    Disconnect(a);
  }
  Break("a", 719);
  EXPECT_EQ(Of("a").strikes, 2u);
  EXPECT_EQ(Of("a").refused_for, std::chrono::seconds(1));
  EXPECT_EQ(Of("b").strikes, 0u);
  Client a = Connect("token-a");
  const RequestId refused = Acquire("a");
  ASSERT_EQ(Failure(refused), absl::StatusCode::kPermissionDenied);
  const absl::Status why = outcome(refused).grant->status();
  EXPECT_EQ(RetryAfterSeconds(why), 1);
  EXPECT_THAT(std::string(why.message()), HasSubstr("2 faults of its own"));
  Serve("b", b);
  loop_.Advance(std::chrono::seconds(1));
  Serve("a", a);
}

TEST_F(FunctionStrikesTest, WhatIsNotItsFaultIsNotHeldAgainstIt) {
  for (int i = 0; i < 3; ++i) Break("a", 214);  // an ECC error of the memory
  for (int i = 0; i < 3; ++i) CrashUnder("a", SIGKILL);
  for (int i = 0; i < 3; ++i) CrashUnder("a", 0);
  EXPECT_EQ(Of("a").strikes, 0u);
  Client a = Connect("token-a");
  Serve("a", a);
}

TEST_F(FunctionStrikesTest, CrashesCountFromTheSecondOn) {
  CrashUnder("a", SIGSEGV);
  CrashUnder("b", SIGSEGV);
  EXPECT_EQ(Of("a").strikes, 0u);
  CrashUnder("a", SIGABRT);
  EXPECT_EQ(Of("a").strikes, 1u);
  EXPECT_EQ(Of("b").strikes, 0u);
  CrashUnder("a", SIGSEGV);
  EXPECT_EQ(Of("a").strikes, 2u);
  EXPECT_EQ(Failure(Acquire("a")), absl::StatusCode::kPermissionDenied);
  EXPECT_NE(Failure(Acquire("b")), absl::StatusCode::kPermissionDenied);
}

TEST_F(FunctionStrikesTest, RequestsThatWaitAreRefusedToo) {
  Break("a", 700);
  Client a = Connect("token-a");
  const RequestId running = Acquire("a");
  TakeLease(a);
  const RequestId waiting = Acquire("a");
  const RequestId neighbour = Acquire("b");
  LoseContext(a, 700);
  Settle();
  EXPECT_EQ(Failure(waiting), absl::StatusCode::kPermissionDenied);
  EXPECT_FALSE(outcome(neighbour).grant && !outcome(neighbour).grant->ok());
  Release(running, scheduler::Ending::kFailed);
}

TEST_F(FunctionStrikesTest, OutsideOfRequestsItWaits) {
  Break("a", 700);
  Break("a", 700);
  Client a = Connect("token-a");
  Say(a, wire::LeaseRequest{});
  EXPECT_FALSE(a.link->Take<wire::LeaseGrant>());
  loop_.Advance(std::chrono::seconds(1));
  Settle();
  EXPECT_TRUE(a.link->Take<wire::LeaseGrant>());
}

TEST_F(FunctionStrikesTest, WorkThatDoesNotEndIsAFault) {
  Client a = Connect("token-a");
  const RequestId request = Acquire("a");
  TakeLease(a);
  Refuse(&v1::DaemonMessage::has_end_lease, absl::DeadlineExceededError("work goes on"));
  Release(request);
  GiveBack(a);
  EXPECT_EQ(Of("a").strikes, 1u);
  answers_ = nullptr;
}

}  // namespace
}  // namespace torpor::server
