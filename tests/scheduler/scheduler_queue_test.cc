#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tests/scheduler/scheduler_test.h"

// Who is asked when a GPU is free, and in which order.
namespace torpor::scheduler {
namespace {

using std::chrono::milliseconds;

constexpr auto kMax = static_cast<std::uint64_t>(Scheduler::kMaxPassedOver);

// Has all but one wait for a better GPU.
class Choosy final : public PlacementPolicy {
 public:
  Choosy(InstanceId content, std::uint64_t& asked) : content_(content), asked_(asked) {}

  std::optional<GpuIndex> Choose(const Instance& instance, const std::vector<GpuIndex>& candidates,
                                 const NodeState&, TimePoint) override {
    ++asked_;
    return instance.id == content_ ? std::optional(candidates.front()) : std::nullopt;
  }

 private:
  const InstanceId content_;
  std::uint64_t& asked_;
};

TEST(SchedulerQueueTest, AFreeGpuIsOfferedToTheFirstOnly) {
  std::uint64_t asked = 0;
  Scheduler scheduler(
      {MakeFifoQueue(), std::make_unique<Choosy>(InstanceId{kMax + 10}, asked), MakeLruEviction()});
  const auto tell = [&](const Event& event) { return scheduler.OnEvent(event, TimePoint()); };
  tell(ExecutorUp{kGpu0, 100});
  for (std::uint64_t id = 1; id <= 10 * kMax; ++id) {
    tell(InstanceAdded{InstanceId{id}});
    asked = 0;
    tell(RequestArrived{RequestId{id}, InstanceId{id}});
    EXPECT_EQ(asked, std::min(id, kMax));
  }
  // The others come when those have gone.
  for (std::uint64_t id = 1; id < 10; ++id) {
    EXPECT_EQ(scheduler.node().gpus.at(kGpu0).tenant, InstanceId{});
    tell(RequestGone{RequestId{id}});
  }
  tell(RequestGone{RequestId{10}});
  EXPECT_EQ(scheduler.node().gpus.at(kGpu0).tenant, InstanceId{kMax + 10});
}

class GpusOfTwoSizesTest : public SchedulerTest {};

TEST_F(GpusOfTwoSizesTest, WhoIsTooLargeForTheFreeOneKeepsNobodyFromIt) {
  Up(kGpu0, 100);
  Up(kGpu1, 20);
  for (std::uint64_t id = 1; id <= 2 * kMax; ++id) {
    Add(InstanceId{id}, 50);
    Arrive(id, InstanceId{id});
  }
  const InstanceId small{1'000};
  Add(small, 10);
  const auto swap_in = Only<SwapIn>(Arrive(1'000, small));
  ASSERT_TRUE(swap_in);
  EXPECT_EQ(swap_in->gpu, kGpu1);
}

// Of two functions with GPUs enough for one.
class JoinTest : public SchedulerTest {
 protected:
  JoinTest()
      : SchedulerTest(
            {MakeSharedQueue(MakeFifoQueue), MakeResidentFirstPlacement(), MakeLruEviction()}) {
    Up(kGpu0, 100);
  }

  void AddFunction(InstanceId id, int priority, TenantId tenant) {
    const FunctionId function{id.value};
    Tell(FunctionSet{.function = function, .priority = priority, .tenant = tenant});
    Tell(InstanceAdded{id, 2, {}, function});
    MakeResident(id, kGpu0);
  }
  // Whether a second request joins the lease of A while one for B waits.
  bool Joins() {
    EXPECT_TRUE(Only<Grant>(Arrive(1, kA)));
    Advance(milliseconds(30));
    Arrive(2, kB);
    Advance(milliseconds(1));
    return Only<Grant>(Arrive(3, kA)).has_value();
  }
};

TEST_F(JoinTest, NobodyJoinsAheadOfAHigherPriority) {
  AddFunction(kA, 0, TenantId{1});
  AddFunction(kB, 1, TenantId{1});
  EXPECT_FALSE(Joins());
}

TEST_F(JoinTest, AHigherPriorityJoins) {
  AddFunction(kA, 1, TenantId{1});
  AddFunction(kB, 0, TenantId{2});
  EXPECT_TRUE(Joins());
}

TEST_F(JoinTest, NobodyJoinsAheadOfATenantThatHasHadLess) {
  AddFunction(kA, 0, TenantId{1});
  AddFunction(kB, 0, TenantId{2});
  EXPECT_FALSE(Joins());
}

class LatestStartTest : public SchedulerTest {
 protected:
  LatestStartTest()
      : SchedulerTest({MakeLatestStartQueue({.rescue_limit = 30}), MakeResidentFirstPlacement(),
                       MakeLruEviction()}) {
    Up(kGpu0, 100);
  }

  Actions ArriveBy(std::uint64_t request, InstanceId instance, Duration deadline) {
    return Tell(RequestArrived{RequestId{request}, instance, now_ + deadline});
  }
  // Runs of its function take that long with the image there, and if it comes from the host.
  void Learn(InstanceId instance, Duration resident, Duration from_host) {
    Arrive(101, instance);
    const auto cold = Only<Grant>(Tell(SwapInDone{instance, kGpu0}));
    ASSERT_TRUE(cold);
    Serve(*cold, from_host);
    const auto warm = Only<Grant>(Arrive(102, instance));
    ASSERT_TRUE(warm);
    Serve(*warm, resident);
  }
  // A and B are instances of one function; they and C are on the GPU, and A runs.
  std::optional<Grant> RunOneOfTwo(Objective objective) {
    const FunctionId function{9};
    Tell(FunctionSet{.function = function, .objective = objective});
    for (const InstanceId id : {kA, kB}) {
      Tell(InstanceAdded{id, 1, {}, function});
      Tell(GrowthWanted{GrowthId{100 + id.value}, id, 10});
      MakeResident(id, kGpu0);
    }
    Add(kC, 10);
    MakeResident(kC, kGpu0);
    return Only<Grant>(Arrive(1, kA));
  }
  // The request that gets the GPU when `running` gives it back.
  std::optional<RequestId> NextAfter(const Grant& running) {
    const auto next = Only<Grant>(Serve(running, milliseconds(1)));
    return next ? std::optional(next->request) : std::nullopt;
  }
};

TEST_F(LatestStartTest, WhoseImageComesMayWaitForLonger) {
  for (const InstanceId id : {kA, kB, kC}) Add(id, 10);
  Learn(kB, milliseconds(10), milliseconds(90));
  MakeResident(kA, kGpu0);
  MakeResident(kC, kGpu0);
  EXPECT_TRUE(Only<SwapOut>(Tell(EvictionWanted{kB})));
  Tell(SwapOutDone{kB, kGpu0});
  const auto running = Only<Grant>(Arrive(1, kA));
  ASSERT_TRUE(running);
  ArriveBy(2, kB, milliseconds(150));
  ArriveBy(3, kC, milliseconds(100));
  EXPECT_TRUE(Only<SwapIn>(Tell(LoadWanted{kB, kGpu0})));
  Tell(SwapInDone{kB, kGpu0});
  EXPECT_EQ(NextAfter(*running), RequestId{3});
}

TEST_F(LatestStartTest, WhoseImageGoesMayNot) {
  for (const InstanceId id : {kA, kB, kC}) Add(id, 10);
  Learn(kB, milliseconds(10), milliseconds(90));
  MakeResident(kA, kGpu0);
  MakeResident(kC, kGpu0);
  const auto running = Only<Grant>(Arrive(1, kA));
  ASSERT_TRUE(running);
  ArriveBy(2, kB, milliseconds(150));
  ArriveBy(3, kC, milliseconds(100));
  EXPECT_TRUE(Only<SwapOut>(Tell(EvictionWanted{kB})));
  Tell(SwapOutDone{kB, kGpu0});
  const auto swap_in = Only<SwapIn>(Serve(*running, milliseconds(1)));
  ASSERT_TRUE(swap_in);
  EXPECT_EQ(swap_in->instance, kB);
}

TEST_F(LatestStartTest, WhatIsLearnedOfAFunctionHoldsForAllItsInstances) {
  const auto running = RunOneOfTwo({});
  ASSERT_TRUE(running);
  ArriveBy(2, kB, milliseconds(150));
  ArriveBy(3, kC, milliseconds(130));
  // Now a run is known to take so long that B must start before C.
  const auto next = Only<Grant>(Serve(*running, milliseconds(100)));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->request, RequestId{2});
}

TEST_F(LatestStartTest, WhoIsBeyondRescueIsSoWithAllItsInstances) {
  const auto running = RunOneOfTwo({.deadline = milliseconds(20)});
  ASSERT_TRUE(running);
  Advance(milliseconds(30));
  ArriveBy(2, kB, milliseconds(150));
  ArriveBy(3, kC, milliseconds(500));
  // It is late, so that its function needs 49 requests in time.
  EXPECT_EQ(NextAfter(*running), RequestId{3});
}

class HeavinessTest : public SchedulerTest {
 protected:
  HeavinessTest()
      : SchedulerTest({MakeFifoQueue(), MakeResidentFirstPlacement(), MakeHeavinessEviction()}) {}
};

TEST_F(HeavinessTest, WhatIsLearnedOfAFunctionHoldsForAllItsInstances) {
  Up(kGpu0, 100);
  const FunctionId two{9};
  Tell(FunctionSet{.function = two});
  for (const InstanceId id : {kA, kB}) {
    Tell(InstanceAdded{id, 1, {}, two});
    Tell(GrowthWanted{GrowthId{100 + id.value}, id, 10});
  }
  Add(kC, 10);
  MakeResident(kC, kGpu0);
  Advance(milliseconds(1));
  MakeResident(kB, kGpu0);
  const auto rank = [&](InstanceId id) {
    return scheduler_.node().instances.at(id).image.copies.at(kGpu0).evictable_rank.value();
  };
  EXPECT_TRUE(rank(kC) < rank(kB));
  Arrive(1, kA);
  const auto cold = Only<Grant>(Tell(SwapInDone{kA, kGpu0}));
  ASSERT_TRUE(cold);
  Serve(*cold, milliseconds(20));
  const auto warm = Only<Grant>(Arrive(2, kA));
  ASSERT_TRUE(warm);
  Serve(*warm, milliseconds(20));
  // It is light.
  EXPECT_TRUE(rank(kB) < rank(kC));
}

}  // namespace
}  // namespace torpor::scheduler
