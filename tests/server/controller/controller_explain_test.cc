#include <gmock/gmock.h>

#include "tests/server/controller/controller_harness.h"

// Why a request waited, and where it ran.
namespace torpor::server {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class ControllerExplainTest : public ControllerHarness {
 protected:
  ControllerExplainTest() : ControllerHarness(2) {}

  RequestTrace Explain(RequestId request) {
    const auto trace = controller_->Explain("request-" + std::to_string(request.value));
    EXPECT_TRUE(trace.ok()) << trace.status();
    return trace.value_or(RequestTrace());
  }
};

TEST_F(ControllerExplainTest, ARequestWaitsForAGpuAndThenForItsImage) {
  StartExecutor(0);
  const Client a = Connect("token-a");
  Client b = Connect("token-b");
  ASSERT_TRUE(Malloc(b, 4 * kMiB));
  const RequestId first = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  const RequestId second = Acquire("b");
  loop_.Advance(milliseconds(10));
  EXPECT_FALSE(Explain(second).granted);
  EXPECT_EQ(Explain(second).as_of - Explain(second).arrival, milliseconds(10));
  EXPECT_TRUE(Explain(first).granted);
  EXPECT_FALSE(Explain(first).ended);
  Hold(&v1::DaemonMessage::has_swap_in);
  Release(first);
  ASSERT_TRUE(GiveBack(a));
  loop_.Advance(milliseconds(5));
  answers_ = nullptr;
  Settle();
  ASSERT_TRUE(TakeLease(b));
  loop_.Advance(milliseconds(7));
  Release(second);

  const RequestTrace trace = Explain(second);
  EXPECT_EQ(trace.function, "b");
  EXPECT_EQ(trace.waiting_before, 0u);
  ASSERT_TRUE(trace.standing);
  EXPECT_EQ(trace.gpu, GpuIndex{0});
  EXPECT_EQ(trace.placement.since - trace.arrival, milliseconds(10));
  EXPECT_EQ(trace.placement.swap_in, trace.placement.since);
  EXPECT_EQ(trace.placement.source, SwapSource::kHost);
  EXPECT_FALSE(trace.placement.peer);
  EXPECT_EQ(*trace.granted - trace.placement.since, milliseconds(5));
  EXPECT_EQ(*trace.ended - *trace.granted, milliseconds(7));
  EXPECT_EQ(trace.ending, scheduler::Ending::kAnswered);
}

TEST_F(ControllerExplainTest, RoomIsMadeByEvictions) {
  StartExecutor(0);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  ASSERT_TRUE(Malloc(a, 40 * kMiB));
  Serve("a", a);
  ASSERT_TRUE(Malloc(b, 40 * kMiB));
  Hold(&v1::DaemonMessage::has_swap_out);
  const RequestId request = Acquire("b");
  loop_.Advance(milliseconds(3));
  answers_ = nullptr;
  Settle();
  ASSERT_TRUE(TakeLease(b));
  const RequestTrace trace = Explain(request);
  EXPECT_THAT(trace.placement.evicted, ElementsAre("a"));
  ASSERT_TRUE(trace.placement.swap_in);
  EXPECT_EQ(*trace.placement.swap_in - trace.placement.since, milliseconds(3));
}

TEST_F(ControllerExplainTest, TheNextRequestOfTheSameFunctionFindsItsImage) {
  StartExecutor(0);
  Client a = Connect("token-a");
  ASSERT_TRUE(Malloc(a, 4 * kMiB));
  const RequestId first = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  const RequestId second = Acquire("a");
  loop_.Advance(milliseconds(4));
  Release(first);
  ASSERT_TRUE(GiveBack(a));
  ASSERT_TRUE(TakeLease(a));
  EXPECT_EQ(Explain(first).placement.source, SwapSource::kHost);
  EXPECT_EQ(Explain(second).placement.source, SwapSource::kResident);
  EXPECT_EQ(Explain(second).placement.since - Explain(second).arrival, milliseconds(4));
  EXPECT_FALSE(Explain(second).placement.swap_in);
  EXPECT_EQ((*outcome(second).grant)->source, SwapSource::kResident);
}

TEST_F(ControllerExplainTest, WhatKeptARequestFromAGpuIsToldApart) {
  StartExecutor(0);
  const Client a = Connect("token-a");
  const Client b = Connect("token-b");
  const RequestId first = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  loop_.Advance(milliseconds(1));
  const RequestId second = Acquire("a");
  loop_.Advance(milliseconds(1));
  const RequestId third = Acquire("b");
  loop_.Advance(milliseconds(2));
  EXPECT_EQ(Explain(second).delay.own_lease, milliseconds(3));
  EXPECT_EQ(Explain(second).delay.no_gpu, milliseconds(0));
  EXPECT_EQ(Explain(third).delay.own_lease, milliseconds(0));
  EXPECT_EQ(Explain(third).delay.no_gpu, milliseconds(2));
  Release(first);
  ASSERT_TRUE(GiveBack(a));
  ASSERT_TRUE(TakeLease(b)) << "a has had an answer in time";
  loop_.Advance(milliseconds(5));
  Release(third);
  ASSERT_TRUE(GiveBack(b));
  ASSERT_TRUE(TakeLease(a));
  EXPECT_EQ(Explain(third).delay.no_gpu, milliseconds(2));
  EXPECT_THAT(Explain(third).delay.earlier, IsEmpty());
  EXPECT_EQ(Explain(second).delay.own_lease, milliseconds(3));
  EXPECT_EQ(Explain(second).delay.no_gpu, milliseconds(5));
  EXPECT_THAT(Explain(second).delay.earlier, IsEmpty());
  EXPECT_THAT(Explain(second).delay.overtakers, ElementsAre(Pair("b", 1u)));
}

TEST_F(ControllerExplainTest, EarlierOnesGoFirst) {
  StartExecutor(0);
  const Client a = Connect("token-a");
  const Client b = Connect("token-b");
  const Client c = Connect("token-c");
  const RequestId first = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  const RequestId second = Acquire("b");
  loop_.Advance(milliseconds(1));
  const RequestId third = Acquire("c");
  loop_.Advance(milliseconds(1));
  Release(first);
  ASSERT_TRUE(GiveBack(a));
  ASSERT_TRUE(TakeLease(b));
  EXPECT_THAT(Explain(second).delay.earlier, IsEmpty());
  EXPECT_THAT(Explain(third).delay.earlier, ElementsAre(Pair("b", 1u)));
  EXPECT_THAT(Explain(third).delay.overtakers, IsEmpty());
}

TEST_F(ControllerExplainTest, WhoWasPutBeforeARequestIsNamed) {
  StartExecutor(0);
  Reconfigure([](Config& config) { config.functions["c"].priority = 1; });
  const Client a = Connect("token-a");
  const Client b = Connect("token-b");
  const Client c = Connect("token-c");
  const RequestId running = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  const RequestId waiting = Acquire("b");
  loop_.Advance(milliseconds(1));
  Acquire("c");
  loop_.Advance(milliseconds(1));
  Release(running);
  ASSERT_TRUE(GiveBack(a));
  ASSERT_TRUE(TakeLease(c));
  EXPECT_THAT(Explain(waiting).delay.earlier, IsEmpty());
  EXPECT_THAT(Explain(waiting).delay.overtakers, ElementsAre(Pair("c", 1u)));
}

TEST_F(ControllerExplainTest, WhoJoinsALeaseWaitsForNoImage) {
  StartExecutor(0);
  const Client c = Connect("token-c");  // max_in_flight: 2
  const RequestId first = Acquire("c");
  ASSERT_TRUE(TakeLease(c));
  Acquire("c");
  const RequestId third = Acquire("c");
  loop_.Advance(milliseconds(6));
  Release(first);
  EXPECT_EQ(Explain(third).delay.own_lease, milliseconds(6));
  EXPECT_EQ(Explain(third).decided, Explain(third).granted);
  EXPECT_TRUE(Explain(third).joined);
  EXPECT_EQ((*outcome(third).grant)->queue, milliseconds(6));
  EXPECT_EQ((*outcome(third).grant)->swap, milliseconds(0));
}

TEST_F(ControllerExplainTest, AProgramGivesItsGpuBackForARequest) {
  StartExecutor(0);
  const Client a = Connect("token-a");
  const Client b = Connect("token-b");
  Say(a, wire::LeaseRequest{});
  ASSERT_TRUE(TakeLease(a));
  loop_.Advance(milliseconds(50));
  const RequestId request = Acquire("b");
  loop_.Advance(milliseconds(1));
  ASSERT_TRUE(GiveBack(a));
  ASSERT_TRUE(TakeLease(b));
  EXPECT_TRUE(Explain(request).delay.has_revoked);
}

TEST_F(ControllerExplainTest, NeighboursWhoseImagesComeAreNamed) {
  for (int gpu = 0; gpu < 2; ++gpu) StartExecutor(gpu);
  Client a = Connect("token-a");
  Client b = Connect("token-b");
  ASSERT_TRUE(Malloc(a, 4 * kMiB));
  ASSERT_TRUE(Malloc(b, 4 * kMiB));
  completes_swap_ins_ = false;
  const RequestId first = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  const RequestId second = Acquire("b");
  ASSERT_TRUE(TakeLease(b));
  EXPECT_THAT(Explain(first).placement.loading_nearby, IsEmpty());
  const RequestTrace trace = Explain(second);
  ASSERT_EQ(trace.placement.loading_nearby.size(), 1u);
  EXPECT_EQ(trace.placement.loading_nearby[0].gpu, Explain(first).gpu);
  EXPECT_EQ(trace.placement.loading_nearby[0].function, "a");
}

TEST_F(ControllerExplainTest, AnImageMayComeFromAnotherGpu) {
  has_links_ = true;
  StartExecutor(0);
  Client a = Connect("token-a");
  const Client b = Connect("token-b");
  ASSERT_TRUE(Malloc(a, 4 * kMiB));
  Serve("a", a);
  Acquire("b");
  ASSERT_TRUE(TakeLease(b));
  StartExecutor(1);
  const RequestId request = Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  const RequestTrace trace = Explain(request);
  EXPECT_EQ(trace.gpu, GpuIndex{1});
  EXPECT_EQ(trace.placement.peer, GpuIndex{0});
  EXPECT_EQ(trace.placement.source, SwapSource::kPeer);
}

TEST_F(ControllerExplainTest, WhyARequestWasNotServedIsKept) {
  StartExecutor(0);
  const Client a = Connect("token-a");
  Acquire("a");
  ASSERT_TRUE(TakeLease(a));
  const RequestId impatient = Acquire("b", milliseconds(5));
  loop_.Advance(milliseconds(6));
  const RequestTrace trace = Explain(impatient);
  EXPECT_FALSE(trace.granted);
  EXPECT_EQ(trace.ending, scheduler::Ending::kFailed);
  EXPECT_THAT(trace.why, HasSubstr("no GPU became free in time"));
}

TEST_F(ControllerExplainTest, OnlyTheLastRequestsAreRemembered) {
  StartExecutor(0);
  const Client a = Connect("token-a");
  const RequestId first = Acquire("nobody");
  EXPECT_EQ(controller_->Explain("request-1").status().code(), absl::StatusCode::kNotFound);
  RequestHistory history(2);
  for (const char* id : {"x", "y", "x", "z"}) history.Add({.id = id, .function = id});
  EXPECT_EQ(history.Find("y"), nullptr);
  EXPECT_NE(history.Find("x"), nullptr);
  EXPECT_NE(history.Find("z"), nullptr);
  EXPECT_EQ(Failure(first), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace torpor::server
