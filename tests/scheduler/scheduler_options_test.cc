#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "scheduler/required_count.h"
#include "scheduler/setup.h"
#include "tests/scheduler/scheduler_test.h"

// What functions and options ask of the scheduler beyond its policies.
namespace torpor::scheduler {
namespace {

using std::chrono::milliseconds;

class SchedulerOptionsTest : public SchedulerTest {
 protected:
  explicit SchedulerOptionsTest(SchedulerOptions options = {}) : SchedulerTest(options) {}
};

TEST_F(SchedulerOptionsTest, FurtherRequestsThanMayWaitAreRefused) {
  Up(kGpu0, 100);
  Tell(FunctionSet{.function = FunctionId{9}, .max_waiting = 1});
  Tell(InstanceAdded{kA, 1, {}, FunctionId{9}});
  EXPECT_TRUE(Only<SwapIn>(Arrive(1, kA)));
  const auto refuse = Only<Refuse>(Arrive(2, kA));
  ASSERT_TRUE(refuse);
  EXPECT_EQ(refuse->request, RequestId{2});
  EXPECT_EQ(refuse->reason, Refusal::kQueueFull);
  EXPECT_TRUE(Only<Grant>(Tell(SwapInDone{kA, kGpu0})));
  EXPECT_TRUE(Arrive(3, kA).empty());
}

TEST_F(SchedulerOptionsTest, InstancesOfAFunctionShareItsRequests) {
  Up(kGpu0, 100);
  Up(kGpu1, 100);
  Tell(FunctionSet{.function = FunctionId{9}});
  for (const InstanceId id : {kA, kB}) Tell(InstanceAdded{id, 1, {}, FunctionId{9}});
  const auto arrive = [&](std::uint64_t id) {
    return Tell(
        RequestArrived{.request = RequestId{id}, .instance = {}, .function = FunctionId{9}});
  };
  const auto first = Only<SwapIn>(arrive(1));
  const auto second = Only<SwapIn>(arrive(2));
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->instance, second->instance);
  for (const SwapIn& swap_in : {*first, *second}) {
    EXPECT_TRUE(Only<Grant>(Tell(SwapInDone{swap_in.instance, swap_in.gpu})));
  }
  // Two more wait, one with each; one of the instances ends both of its requests first.
  arrive(3);
  arrive(4);
  Tell(RequestGone{RequestId{1}, Ending::kAnswered});
  const auto third = Only<Grant>(Tell(LeaseEnded{first->instance}));
  ASSERT_TRUE(third);
  Tell(RequestGone{third->request, Ending::kAnswered});
  const auto fourth = Only<Grant>(Tell(LeaseEnded{third->instance}));
  ASSERT_TRUE(fourth);
  EXPECT_EQ(fourth->instance, first->instance);
}

TEST_F(SchedulerOptionsTest, RunTimesAreLearnedByWhereTheImageWas) {
  Up(kGpu0, 100);
  Add(kA, 10);
  Arrive(1, kA);
  const auto cold = Only<Grant>(Tell(SwapInDone{kA, kGpu0}));
  ASSERT_TRUE(cold);
  Serve(*cold, milliseconds(30));
  const auto warm = Only<Grant>(Arrive(2, kA));
  ASSERT_TRUE(warm);
  Serve(*warm, milliseconds(20));
  const RunTimes& times = scheduler_.node().functions.at(FunctionId{kA.value}).run_times;
  EXPECT_EQ(times.of(ImageSource::kHost).value(), milliseconds(30));
  EXPECT_EQ(times.of(ImageSource::kResident).value(), milliseconds(20));
  EXPECT_TRUE(times.is_heavy(1.3));
}

TEST_F(SchedulerOptionsTest, AWayFromTheDiskTeachesNothingOfTheHost) {
  Up(kGpu0, 100);
  Add(kA, 10);
  Tell(ImageSpilled{kA, true});
  Arrive(1, kA);
  Tell(ImageSpilled{kA, false});  // by way of host memory
  const auto cold = Only<Grant>(Tell(SwapInDone{kA, kGpu0}));
  ASSERT_TRUE(cold);
  Tell(ImageArrived{kA, kGpu0});
  Serve(*cold, milliseconds(300));
  const RunTimes& times = scheduler_.node().functions.at(FunctionId{kA.value}).run_times;
  EXPECT_EQ(times.of(ImageSource::kDisk).value(), milliseconds(300));
  EXPECT_FALSE(times.of(ImageSource::kHost).value());
  EXPECT_FALSE(times.transfer.value());
}

TEST_F(SchedulerOptionsTest, RequestsCountAgainstTheObjectiveWhenTheyAreOver) {
  Up(kGpu0, 100);
  Tell(FunctionSet{.function = FunctionId{9}, .objective = {.deadline = milliseconds(25)}});
  Tell(InstanceAdded{kA, 1, {}, FunctionId{9}});
  Arrive(1, kA);
  const auto grant = Only<Grant>(Tell(SwapInDone{kA, kGpu0}));
  ASSERT_TRUE(grant);
  Serve(*grant, milliseconds(20));
  const auto late = Only<Grant>(Arrive(2, kA));
  ASSERT_TRUE(late);
  Serve(*late, milliseconds(26));
  // Its caller leaves before the deadline; another's leaves after it.
  Arrive(3, kA);
  Tell(RequestGone{RequestId{3}});
  const FunctionState& function = scheduler_.node().functions.at(FunctionId{9});
  EXPECT_EQ(function.finished, 2u);
  EXPECT_EQ(function.in_time, 1u);
  Arrive(4, kA);
  Advance(milliseconds(30));
  Tell(RequestGone{RequestId{4}});
  EXPECT_EQ(function.finished, 3u);
  EXPECT_EQ(function.in_time, 1u);
}

TEST_F(SchedulerOptionsTest, WhatWasHoursAgoIsNotHeldAgainstAFunction) {
  Up(kGpu0, 100);
  const Objective objective{.deadline = milliseconds(25), .percentile = 0.9};
  Tell(FunctionSet{.function = FunctionId{9}, .objective = objective});
  Tell(InstanceAdded{kA, 1, {}, FunctionId{9}});
  MakeResident(kA, kGpu0);
  const FunctionState& function = scheduler_.node().functions.at(FunctionId{9});
  const auto grant = Only<Grant>(Arrive(1, kA));
  ASSERT_TRUE(grant);
  Serve(*grant, milliseconds(30));
  EXPECT_NEAR(RequiredCount(function), 9, 1e-9);
  Advance(std::chrono::minutes(59));
  Tell(TimePassed{});
  EXPECT_NEAR(RequiredCount(function), 9, 1e-9);
  Advance(std::chrono::minutes(12));
  Tell(TimePassed{});
  EXPECT_EQ(RequiredCount(function), 0);
  EXPECT_EQ(function.finished, 1u);
}

TEST_F(SchedulerOptionsTest, AnotherObjectiveCountsFromNow) {
  Up(kGpu0, 100);
  const auto set = [&](Duration deadline, int priority) {
    Tell(FunctionSet{.function = FunctionId{9},
                     .objective = {.deadline = deadline, .percentile = 0.9},
                     .priority = priority});
  };
  set(milliseconds(25), 0);
  Tell(InstanceAdded{kA, 1, {}, FunctionId{9}});
  MakeResident(kA, kGpu0);
  const FunctionState& function = scheduler_.node().functions.at(FunctionId{9});
  const auto grant = Only<Grant>(Arrive(1, kA));
  ASSERT_TRUE(grant);
  Serve(*grant, milliseconds(30));
  set(milliseconds(25), 1);
  EXPECT_NEAR(RequiredCount(function), 9, 1e-9);
  set(milliseconds(40), 1);
  EXPECT_EQ(RequiredCount(function), 0);
}

TEST_F(SchedulerOptionsTest, AnImageThatNothingChangesStaysWhereItWas) {
  Tell(ExecutorUp{kGpu0, 100, {}});
  for (const InstanceId id : {kA, kB}) {
    Tell(InstanceAdded{.instance = id, .keeps_replicas = true});
    Tell(GrowthWanted{GrowthId{id.value}, id, 30});
    MakeResident(id, kGpu0);
  }
  EXPECT_TRUE(Only<Grant>(Arrive(1, kB)));
  Tell(ExecutorUp{kGpu1, 100, {kGpu0}});
  const auto swap_in = Only<SwapIn>(Arrive(2, kA));
  ASSERT_TRUE(swap_in);
  EXPECT_EQ(swap_in->source, kGpu0);
  EXPECT_TRUE(swap_in->keeps_source);
  EXPECT_TRUE(Only<Grant>(Tell(SwapInDone{kA, kGpu1})));
  EXPECT_EQ(scheduler_.node().instances.at(kA).image.copies.size(), 2u);
}

TEST_F(SchedulerOptionsTest, FurtherCopiesGoWhileTheImageRuns) {
  Tell(ExecutorUp{kGpu0, 100, {}});
  for (const InstanceId id : {kA, kB}) Tell(InstanceAdded{.instance = id, .keeps_replicas = true});
  Tell(GrowthWanted{GrowthId{1}, kA, 60});
  Tell(GrowthWanted{GrowthId{2}, kB, 60});
  MakeResident(kA, kGpu0);
  Add(kC, 10);
  MakeResident(kC, kGpu0);
  EXPECT_TRUE(Only<Grant>(Arrive(1, kC)));
  Tell(ExecutorUp{kGpu1, 100, {kGpu0}});
  EXPECT_TRUE(Only<SwapIn>(Arrive(2, kA)));
  EXPECT_TRUE(Only<Grant>(Tell(SwapInDone{kA, kGpu1})));
  Arrive(3, kB);
  Tell(RequestGone{RequestId{1}, Ending::kAnswered});
  const Actions actions = Tell(LeaseEnded{kC});
  ASSERT_FALSE(actions.empty());
  const auto* const swap_out = std::get_if<SwapOut>(&actions.front());
  ASSERT_NE(swap_out, nullptr);
  EXPECT_EQ(swap_out->instance, kA);
  EXPECT_EQ(swap_out->gpu, kGpu0);
}

// Instances are bound to GPUs for ever, and nothing is evicted.
class BoundInstancesTest : public SchedulerTest {
 protected:
  BoundInstancesTest()
      : SchedulerTest(std::move(MakeSetup("native")->policies), MakeSetup("native")->options) {
    Up(kGpu0, 40);
    Up(kGpu1, 40);
    for (std::uint64_t id = 1; id <= 4; ++id) {
      Tell(InstanceAdded{.instance = InstanceId{id}, .keeps_replicas = true});
    }
  }
  // Does all that is asked for. Returns the GPU of the last grant.
  std::optional<GpuIndex> Do(const Actions& actions) {
    std::optional<GpuIndex> granted;
    for (const Action& action : actions) {
      std::optional<GpuIndex> later;
      if (const auto* const in = std::get_if<SwapIn>(&action)) {
        later = Do(Tell(SwapInDone{in->instance, in->gpu}));
      }
      if (const auto* const out = std::get_if<SwapOut>(&action)) {
        later = Do(Tell(SwapOutDone{out->instance, out->gpu}));
      }
      if (const auto* const grant = std::get_if<Grant>(&action)) granted = grant->gpu;
      if (later) granted = later;
    }
    return granted;
  }
  void End(std::uint64_t request, InstanceId instance) {
    Tell(RequestGone{RequestId{request}, Ending::kAnswered});
    Do(Tell(LeaseEnded{instance}));
  }
};

TEST_F(BoundInstancesTest, LeaveNoCopyInTheRoomOfOthers) {
  const std::optional<GpuIndex> first = Do(Arrive(1, kA));
  ASSERT_TRUE(first);
  End(1, kA);
  // Others take both GPUs, and the other one becomes free before.
  const std::optional<GpuIndex> of_b = Do(Arrive(2, kB));
  ASSERT_TRUE(Do(Arrive(3, kC)) && of_b);
  End(*of_b == *first ? 3 : 2, *of_b == *first ? kC : kB);
  const std::optional<GpuIndex> second = Do(Arrive(4, kA));
  ASSERT_TRUE(second);
  ASSERT_NE(*second, *first);
  // Bound to a GPU now; the rest of the other one is the fourth instance's.
  Tell(GrowthWanted{GrowthId{1}, kA, 30});
  End(4, kA);
  const InstanceId fourth{4};
  Tell(GrowthWanted{GrowthId{2}, fourth, 30});
  End(*of_b == *first ? 2 : 3, *of_b == *first ? kB : kC);
  EXPECT_EQ(scheduler_.node().instances.at(kA).image.copies.size(), 1u);
  EXPECT_TRUE(Do(Arrive(5, fourth))) << "a copy of another one's is in the way";
}

TEST_F(SchedulerOptionsTest, AnotherKeepAliveHoldsFromNow) {
  Up(kGpu0, 100);
  const auto keep = [&](Duration time) {
    Tell(FunctionSet{.function = FunctionId{9}, .keep_alive = time});
  };
  keep(std::chrono::seconds(10));
  Tell(InstanceAdded{kA, 1, {}, FunctionId{9}});
  Tell(GrowthWanted{GrowthId{1}, kA, 10});
  MakeResident(kA, kGpu0);
  keep(std::chrono::seconds(20));
  Advance(std::chrono::seconds(11));
  EXPECT_FALSE(Only<SwapOut>(Tell(TimePassed{})));
  Advance(std::chrono::seconds(9));
  EXPECT_TRUE(Only<SwapOut>(Tell(TimePassed{})));
}

// Tells the scheduler what a node without other load would, and counts.
int SwapInsOfOneFunction(const std::string& policy, int requests) {
  std::optional<Setup> setup = MakeSetup(policy);
  Scheduler scheduler(std::move(setup->policies), setup->options);
  TimePoint now;
  int swap_ins = 0;
  const auto tell = [&](const Event& event) {
    Actions actions = scheduler.OnEvent(event, now);
    for (const Action& action : actions) {
      swap_ins += std::holds_alternative<SwapIn>(action) ? 1 : 0;
    }
    return actions;
  };
  for (int i = 0; i < 4; ++i) tell(ExecutorUp{GpuIndex{i}, 100, {GpuIndex{i ^ 1}}});
  tell(InstanceAdded{.instance = kA});
  tell(GrowthWanted{GrowthId{1}, kA, 50});
  for (std::uint64_t id = 1; id <= static_cast<std::uint64_t>(requests); ++id) {
    now += std::chrono::seconds(1);
    tell(RequestArrived{RequestId{id}, kA});
    tell(SwapInDone{kA, scheduler.node().instances.at(kA).tenancy.gpu});
    now += milliseconds(20);
    tell(RequestGone{RequestId{id}, Ending::kAnswered});
    tell(LeaseEnded{kA});
  }
  return swap_ins;
}

TEST(SetupTest, OnAnIdleNodeAnImageStaysWhereItIs) {
  for (const char* const policy : {"torpor", "torpor-plus", "fifo", "edf", "lru", "random"}) {
    EXPECT_EQ(SwapInsOfOneFunction(policy, 20), 1) << policy;
  }
}

class BoundEarlyTest : public SchedulerTest {
 protected:
  BoundEarlyTest()
      : SchedulerTest(
            {MakeFifoQueue(), MakeResidentFirstPlacement(), MakeLruEviction(), MakeEarlyBinding()},
            {.evicts = false}) {}
};

TEST_F(BoundEarlyTest, AnInstanceStaysWithItsGpu) {
  Up(kGpu0, 100);
  Up(kGpu1, 100);
  for (const InstanceId id : {kA, kB, kC}) Add(id, 40);
  MakeResident(kA, kGpu0);
  EXPECT_TRUE(Only<Grant>(Arrive(1, kA)));
  // C is bound to the same GPU, and waits although the other is free.
  EXPECT_TRUE(Arrive(2, kC).empty());
  const auto swap_in = Only<SwapIn>(Arrive(3, kB));
  ASSERT_TRUE(swap_in);
  EXPECT_EQ(swap_in->gpu, kGpu1);
}

TEST_F(BoundEarlyTest, WhoFoundNoRoomIsRefused) {
  Up(kGpu0, 100);
  Add(kA, 80);
  Add(kB, 40);
  const auto refuse = Only<Refuse>(Arrive(1, kB));
  ASSERT_TRUE(refuse);
  EXPECT_EQ(refuse->reason, Refusal::kNoRoom);
}

TEST_F(BoundEarlyTest, MembersOfAnInstanceAreBoundToGpusOfTheirOwn) {
  Up(kGpu0, 100);
  Up(kGpu1, 60);
  Tell(InstanceAdded{kA, 1, {kB}});
  for (const InstanceId shard : {kA, kB}) {
    EXPECT_TRUE(Only<AllowGrowth>(Tell(GrowthWanted{GrowthId{shard.value}, shard, 40})));
  }
  EXPECT_EQ(Arrive(1, kA).size(), 2u) << "both images come";
}

TEST_F(BoundEarlyTest, APairIsRefusedWhereOnlyOneFindsAGpu) {
  Up(kGpu0, 100);
  Up(kGpu1, 30);
  Tell(InstanceAdded{kA, 1, {kB}});
  for (const InstanceId shard : {kA, kB}) {
    Tell(GrowthWanted{GrowthId{shard.value}, shard, 40});
  }
  const auto refuse = Only<Refuse>(Arrive(1, kA));
  ASSERT_TRUE(refuse);
  EXPECT_EQ(refuse->reason, Refusal::kNoRoom);
}

class KeepAliveTest : public SchedulerTest {
 protected:
  KeepAliveTest()
      : SchedulerTest({MakeFifoQueue(), MakeResidentFirstPlacement(), MakeLruEviction(),
                       MakeResidentBinding()},
                      {.evicts = false}) {}

  void AddKept(InstanceId id, Bytes bytes) {
    Tell(FunctionSet{.function = FunctionId{id.value}, .keep_alive = std::chrono::seconds(10)});
    Add(id, bytes);
  }
};

TEST_F(KeepAliveTest, AColdStartHoldsNoGpu) {
  Up(kGpu0, 100);
  AddKept(kA, 40);
  AddKept(kB, 40);
  EXPECT_TRUE(Only<SwapIn>(Arrive(1, kA)));
  EXPECT_TRUE(Only<SwapIn>(Arrive(2, kB)));
  EXPECT_TRUE(Only<Grant>(Tell(SwapInDone{kB, kGpu0})));
  EXPECT_TRUE(Tell(SwapInDone{kA, kGpu0}).empty());
  Tell(RequestGone{RequestId{2}, Ending::kAnswered});
  const Actions actions = Tell(LeaseEnded{kB});
  ASSERT_FALSE(actions.empty());
  EXPECT_TRUE(std::holds_alternative<Grant>(actions.back()));
}

TEST_F(KeepAliveTest, WhoFindsNoRoomIsRefusedUntilAnotherIsNotKeptAnyLonger) {
  Up(kGpu0, 100);
  AddKept(kA, 80);
  AddKept(kB, 40);
  Arrive(1, kA);
  const auto grant = Only<Grant>(Tell(SwapInDone{kA, kGpu0}));
  ASSERT_TRUE(grant);
  EXPECT_TRUE(Only<Refuse>(Arrive(2, kB)));
  Tell(RequestGone{RequestId{1}, Ending::kAnswered});
  const auto wake_up = Only<WakeUp>(Tell(LeaseEnded{kA}));
  ASSERT_TRUE(wake_up);
  EXPECT_EQ(wake_up->when, now_ + std::chrono::seconds(10));
  Advance(std::chrono::seconds(10));
  const auto swap_out = Only<SwapOut>(Tell(TimePassed{}));
  ASSERT_TRUE(swap_out);
  EXPECT_EQ(swap_out->reason, SwapOutReason::kKeepAliveOver);
  Tell(SwapOutDone{kA, kGpu0});
  EXPECT_TRUE(Only<SwapIn>(Arrive(3, kB)));
}

TEST_F(KeepAliveTest, APairIsRefusedWhereOnlyOneGpuHasRoom) {
  Up(kGpu0, 100);
  Up(kGpu1, 100);
  Add(kA, 80);
  MakeResident(kA, kGpu0);
  constexpr InstanceId kFirst{8};
  constexpr InstanceId kSecond{9};
  Tell(InstanceAdded{kFirst, 1, {kSecond}});
  Tell(GrowthWanted{GrowthId{50}, kFirst, 30});
  Tell(GrowthWanted{GrowthId{51}, kSecond, 40});
  const auto refuse = Only<Refuse>(Arrive(1, kFirst));
  ASSERT_TRUE(refuse);
  EXPECT_EQ(refuse->reason, Refusal::kNoRoom);
  Tell(ImageShrunk{kFirst, 20});
  EXPECT_EQ(Arrive(2, kFirst).size(), 2u) << "the larger takes the GPU with the room";
}

TEST_F(KeepAliveTest, AGpuIsGivenUpWhereAnotherHasTakenTheRoom) {
  Up(kGpu0, 100);
  Up(kGpu1, 100);
  AddKept(kB, 80);
  MakeResident(kB, kGpu0);
  Advance(std::chrono::seconds(10));
  EXPECT_TRUE(Only<SwapOut>(Tell(TimePassed{})));
  constexpr InstanceId kFirst{8};
  constexpr InstanceId kSecond{9};
  Tell(InstanceAdded{kFirst, 1, {kSecond}});
  for (const InstanceId id : {kFirst, kSecond}) Tell(GrowthWanted{GrowthId{id.value}, id, 90});
  EXPECT_TRUE(Only<SwapIn>(Arrive(1, kFirst))) << "the other waits for room";
  AddKept(kC, 15);
  const Actions actions = Arrive(2, kC);
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<SwapIn>(actions[0]));
  EXPECT_EQ(std::get<Refuse>(actions[1]).reason, Refusal::kNoRoom);
}

TEST_F(KeepAliveTest, AColdStartThatFailsIsTriedAgainAfterPauses) {
  Up(kGpu0, 100);
  AddKept(kA, 40);
  EXPECT_TRUE(Only<SwapIn>(Arrive(1, kA)));
  EXPECT_TRUE(Arrive(2, kA).empty());
  for (const int pause_ms : {100, 200, 400}) {
    const auto wake_up = Only<WakeUp>(Tell(SwapInDone{kA, kGpu0, false}));
    ASSERT_TRUE(wake_up);
    EXPECT_EQ(wake_up->when, now_ + milliseconds(pause_ms));
    Advance(milliseconds(pause_ms));
    EXPECT_TRUE(Only<SwapIn>(Tell(TimePassed{})));
  }
  const Actions refused = Tell(SwapInDone{kA, kGpu0, false});
  ASSERT_EQ(refused.size(), 2u);
  for (const Action& action : refused) {
    EXPECT_EQ(std::get<Refuse>(action).reason, Refusal::kSwapFailed);
  }
  EXPECT_EQ(scheduler_.waiting(), 0u);
  // The next request may have more luck.
  EXPECT_TRUE(Only<SwapIn>(Arrive(3, kA)));
  EXPECT_TRUE(Only<Grant>(Tell(SwapInDone{kA, kGpu0})));
}

class TooLateTest : public SchedulerOptionsTest, public testing::WithParamInterface<TooLate> {
 protected:
  TooLateTest() : SchedulerOptionsTest({.too_late = GetParam()}) {
    Up(kGpu0, 100);
    for (const InstanceId id : {kA, kB, kC}) {
      Tell(FunctionSet{.function = FunctionId{id.value},
                       .objective = {.deadline = milliseconds(id == kB ? 20 : 500)}});
      Add(id, 10);
      MakeResident(id, kGpu0);
    }
  }
};

TEST_P(TooLateTest, WhoIsTooLateIsServedLastOrRefused) {
  const auto grant = Only<Grant>(Arrive(1, kA));
  ASSERT_TRUE(grant);
  Arrive(2, kB);
  Arrive(3, kC);
  Advance(milliseconds(100));
  Actions actions = Tell(RequestGone{RequestId{1}, Ending::kAnswered});
  const bool is_refused = std::holds_alternative<Refuse>(actions.back());
  EXPECT_EQ(is_refused, GetParam() == TooLate::kRefuse);
  actions = Tell(LeaseEnded{kA});
  ASSERT_FALSE(actions.empty());
  const auto* const next = std::get_if<Grant>(&actions.back());
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(next->request, RequestId{GetParam() == TooLate::kServe ? 2u : 3u});
  Tell(RequestGone{next->request, Ending::kAnswered});
  const Actions last = Tell(LeaseEnded{next->instance});
  EXPECT_EQ(last.empty(), GetParam() == TooLate::kRefuse);
}

TEST_P(TooLateTest, WhoIsTooLateJoinsNoLeaseAheadOfOthers) {
  const InstanceId two{4};
  Tell(FunctionSet{.function = FunctionId{4}, .objective = {.deadline = milliseconds(20)}});
  Tell(InstanceAdded{two, 2, {}, FunctionId{4}});
  Tell(GrowthWanted{GrowthId{4}, two, 10});
  MakeResident(two, kGpu0);
  EXPECT_TRUE(Only<Grant>(Arrive(1, two)));
  EXPECT_TRUE(Only<Grant>(Arrive(2, two)));
  EXPECT_TRUE(Arrive(3, two).empty());
  EXPECT_TRUE(Arrive(4, kC).empty());
  Advance(milliseconds(100));
  const Actions actions = Tell(RequestGone{RequestId{1}, Ending::kAnswered});
  EXPECT_EQ(Only<Grant>(actions).has_value(), GetParam() == TooLate::kServe);
  EXPECT_EQ(Only<Refuse>(actions).has_value(), GetParam() == TooLate::kRefuse);
  EXPECT_EQ(actions.empty(), GetParam() == TooLate::kServeLast);
}

INSTANTIATE_TEST_SUITE_P(All, TooLateTest,
                         testing::Values(TooLate::kServe, TooLate::kServeLast, TooLate::kRefuse));

}  // namespace
}  // namespace torpor::scheduler
