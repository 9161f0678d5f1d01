#include <gtest/gtest.h>

#include "tests/scheduler/scheduler_test.h"

// What an administrator may ask for.
namespace torpor::scheduler {
namespace {

class SchedulerAdminTest : public SchedulerTest {
 protected:
  static std::optional<LoadRefusal> RefusalOf(const Actions& actions) {
    const auto refuse = Only<RefuseLoad>(actions);
    return refuse ? std::optional(refuse->reason) : std::nullopt;
  }
};

TEST_F(SchedulerAdminTest, ALoadedImageIsThereWhenTheRequestComes) {
  Up(kGpu0, 100);
  Up(kGpu1, 100);
  Add(kA, 60);
  const auto swap_in = Only<SwapIn>(Tell(LoadWanted{kA, kGpu1}));
  ASSERT_TRUE(swap_in);
  EXPECT_EQ(swap_in->gpu, kGpu1);
  EXPECT_TRUE(Tell(SwapInDone{kA, kGpu1, true}).empty());
  const auto grant = Only<Grant>(Arrive(1, kA));
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->gpu, kGpu1);
}

TEST_F(SchedulerAdminTest, ARequestWaitsForTheImageThatIsComingAlready) {
  Up(kGpu0, 100);
  Add(kA, 60);
  EXPECT_TRUE(Only<SwapIn>(Tell(LoadWanted{kA, std::nullopt})));
  EXPECT_TRUE(Arrive(1, kA).empty());
  EXPECT_TRUE(Only<Grant>(Tell(SwapInDone{kA, kGpu0, true})));
}

TEST_F(SchedulerAdminTest, ALoadMakesRoomWhereNobodyRuns) {
  Up(kGpu0, 100);
  Add(kA, 60);
  Add(kB, 60);
  MakeResident(kA, kGpu0);
  const auto swap_out = Only<SwapOut>(Tell(LoadWanted{kB, std::nullopt}));
  ASSERT_TRUE(swap_out);
  EXPECT_EQ(swap_out->instance, kA);
  EXPECT_TRUE(Only<SwapIn>(Tell(SwapOutDone{kA, kGpu0})));
}

TEST_F(SchedulerAdminTest, ALoadWaitsWhileItsRoomIsInUse) {
  Up(kGpu0, 100);
  Add(kA, 60);
  Add(kB, 60);
  MakeResident(kA, kGpu0);
  EXPECT_TRUE(Only<Grant>(Arrive(1, kA)));
  EXPECT_TRUE(Tell(LoadWanted{kB, std::nullopt}).empty());
  Tell(RequestGone{RequestId{1}});
  const auto swap_out = Only<SwapOut>(Tell(LeaseEnded{kA}));
  ASSERT_TRUE(swap_out);
  EXPECT_EQ(swap_out->instance, kA);
}

TEST_F(SchedulerAdminTest, AnImageMovesToTheGpuThatIsNamed) {
  Up(kGpu0, 100);
  Up(kGpu1, 100);
  Add(kA, 60);
  MakeResident(kA, kGpu0);
  const auto swap_out = Only<SwapOut>(Tell(LoadWanted{kA, kGpu1}));
  ASSERT_TRUE(swap_out);
  EXPECT_EQ(swap_out->reason, SwapOutReason::kMove);
  const auto swap_in = Only<SwapIn>(Tell(SwapOutDone{kA, kGpu0}));
  ASSERT_TRUE(swap_in);
  EXPECT_EQ(swap_in->gpu, kGpu1);
}

TEST_F(SchedulerAdminTest, ALoadThatCannotBeIsForgotten) {
  Up(kGpu0, 100);
  Add(kA, 60);
  EXPECT_EQ(RefusalOf(Tell(LoadWanted{kA, GpuIndex{7}})), LoadRefusal::kNoGpu);
  EXPECT_FALSE(scheduler_.IsLoadWanted(kA));
  EXPECT_TRUE(Only<SwapIn>(Tell(LoadWanted{kA, kGpu0})));
  EXPECT_EQ(RefusalOf(Tell(SwapInDone{kA, kGpu0, false})), LoadRefusal::kSwapFailed)
      << "tried once";
}

TEST_F(SchedulerAdminTest, WhatCannotFitEvictsNothing) {
  Up(kGpu0, 100);
  Up(kGpu1, 50);
  Add(kA, 60);
  Add(kB, 30);
  EXPECT_TRUE(Only<SwapIn>(Tell(LoadWanted{kB, kGpu1})));
  Tell(SwapInDone{kB, kGpu1, true});
  EXPECT_EQ(RefusalOf(Tell(LoadWanted{kA, kGpu1})), LoadRefusal::kTooLarge);
  Tell(ExecutorDown{kGpu0});
  EXPECT_EQ(RefusalOf(Tell(LoadWanted{kA, std::nullopt})), LoadRefusal::kTooLarge);
  EXPECT_TRUE(scheduler_.node().instances.at(kB).image.is_present_on(kGpu1));
}

TEST_F(SchedulerAdminTest, NothingIsEvictedWhileWhatRunsLeavesTooLittleRoom) {
  Up(kGpu0, 100);
  Add(kA, 60);
  Add(kB, 30);
  Add(kC, 60);
  MakeResident(kB, kGpu0);
  MakeResident(kA, kGpu0);
  EXPECT_TRUE(Only<Grant>(Arrive(1, kA)));
  EXPECT_TRUE(Tell(LoadWanted{kC, std::nullopt}).empty()) << "without B there is no room either";
  Tell(RequestGone{RequestId{1}});
  EXPECT_TRUE(Only<SwapOut>(Tell(LeaseEnded{kA})));
}

TEST_F(SchedulerAdminTest, NothingMovesBeforeThereIsRoomForIt) {
  Up(kGpu0, 100);
  Up(kGpu1, 100);
  Add(kA, 60);
  Add(kB, 60);
  MakeResident(kA, kGpu0);
  MakeResident(kB, kGpu1);
  EXPECT_TRUE(Only<Grant>(Arrive(1, kB)));
  EXPECT_TRUE(Tell(LoadWanted{kA, kGpu1}).empty());
  EXPECT_TRUE(scheduler_.node().instances.at(kA).image.is_present_on(kGpu0));
}

TEST_F(SchedulerAdminTest, HalfOfAPairIsNotLoaded) {
  Up(kGpu0, 100);
  Add(kA, 60);
  MakeResident(kA, kGpu0);
  constexpr InstanceId kFirst{8};
  constexpr InstanceId kSecond{9};
  Tell(InstanceAdded{kFirst, 1, {kSecond}});
  for (const InstanceId id : {kFirst, kSecond}) {
    Tell(GrowthWanted{GrowthId{id.value + 100}, id, 60});
  }
  EXPECT_EQ(RefusalOf(Tell(LoadWanted{kFirst, std::nullopt})), LoadRefusal::kTooFewGpus);
  Up(kGpu1, 100);
  EXPECT_TRUE(Only<Grant>(Arrive(1, kA)));
  EXPECT_TRUE(Tell(LoadWanted{kFirst, std::nullopt}).empty()) << "one GPU has no room";
}

TEST_F(SchedulerAdminTest, WhatARequestHasOnAnotherGpuStaysThere) {
  Up(kGpu0, 100);
  Up(kGpu1, 100);
  Add(kA, 60);
  MakeResident(kA, kGpu0);
  EXPECT_TRUE(Only<Grant>(Arrive(1, kA)));
  EXPECT_EQ(RefusalOf(Tell(LoadWanted{kA, kGpu1})), LoadRefusal::kInUse);
  EXPECT_TRUE(Tell(LoadWanted{kA, kGpu0}).empty());
}

TEST_F(SchedulerAdminTest, ALoadedImageIsNotTheFirstToLeave) {
  Up(kGpu0, 100);
  for (const InstanceId id : {kA, kB, kC}) Add(id, 50);
  Advance(std::chrono::seconds(1));
  MakeResident(kA, kGpu0);
  Advance(std::chrono::seconds(1));
  Tell(LoadWanted{kB, kGpu0});
  Advance(std::chrono::seconds(1));
  Tell(SwapInDone{kB, kGpu0, true});
  EXPECT_EQ(scheduler_.node().instances.at(kB).image.last_used, now_);
  const auto swap_out = Only<SwapOut>(Arrive(1, kC));
  ASSERT_TRUE(swap_out);
  EXPECT_EQ(swap_out->instance, kA);
}

TEST_F(SchedulerAdminTest, ALoadOfWhatIsThereCountsAsAUse) {
  Up(kGpu0, 100);
  for (const InstanceId id : {kA, kB, kC}) Add(id, 50);
  MakeResident(kA, kGpu0);
  Advance(std::chrono::seconds(1));
  MakeResident(kB, kGpu0);
  Advance(std::chrono::seconds(1));
  EXPECT_TRUE(Tell(LoadWanted{kA, std::nullopt}).empty());
  const auto swap_out = Only<SwapOut>(Arrive(1, kC));
  ASSERT_TRUE(swap_out);
  EXPECT_EQ(swap_out->instance, kB);
}

TEST_F(SchedulerAdminTest, ALoadedImageIsKeptAliveAsAUsedOne) {
  Up(kGpu0, 100);
  Tell(FunctionSet{.function = FunctionId{kA.value}, .keep_alive = std::chrono::seconds(10)});
  Add(kA, 50);
  Advance(std::chrono::minutes(1));
  Tell(LoadWanted{kA, kGpu0});
  const auto wake_up = Only<WakeUp>(Tell(SwapInDone{kA, kGpu0, true}));
  ASSERT_TRUE(wake_up);
  EXPECT_EQ(wake_up->when, now_ + std::chrono::seconds(10));
  Advance(std::chrono::seconds(10));
  EXPECT_TRUE(Only<SwapOut>(Tell(TimePassed{})));
}

TEST_F(SchedulerAdminTest, EvictionTakesWhatNobodyUses) {
  Up(kGpu0, 100);
  Add(kA, 60);
  MakeResident(kA, kGpu0);
  EXPECT_TRUE(Only<Grant>(Arrive(1, kA)));
  EXPECT_TRUE(Tell(EvictionWanted{kA}).empty());
  Tell(RequestGone{RequestId{1}});
  Tell(LeaseEnded{kA});
  const auto swap_out = Only<SwapOut>(Tell(EvictionWanted{kA}));
  ASSERT_TRUE(swap_out);
  EXPECT_EQ(swap_out->reason, SwapOutReason::kRequested);
}

TEST_F(SchedulerAdminTest, PinnedImagesAreEvictedLast) {
  Up(kGpu0, 100);
  for (const InstanceId id : {kA, kB, kC}) Add(id, 50);
  MakeResident(kA, kGpu0);
  Advance(std::chrono::seconds(1));
  MakeResident(kB, kGpu0);
  Tell(PinChanged{kA, true});
  const auto first = Only<SwapOut>(Arrive(1, kC));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->instance, kB) << "though used later";
}

TEST_F(SchedulerAdminTest, PinningStopsNobody) {
  Up(kGpu0, 100);
  Add(kA, 60);
  Add(kB, 60);
  MakeResident(kA, kGpu0);
  Tell(PinChanged{kA, true});
  const auto swap_out = Only<SwapOut>(Arrive(1, kB));
  ASSERT_TRUE(swap_out);
  EXPECT_EQ(swap_out->instance, kA);
}

TEST_F(SchedulerAdminTest, APinnedImageGrowsAtTheCostOfOthers) {
  Up(kGpu0, 100);
  Add(kA, 50);
  Add(kB, 50);
  MakeResident(kA, kGpu0);
  MakeResident(kB, kGpu0);
  Tell(PinChanged{kA, true});
  const auto swap_out = Only<SwapOut>(Tell(GrowthWanted{GrowthId{50}, kA, 20}));
  ASSERT_TRUE(swap_out);
  EXPECT_EQ(swap_out->instance, kB);
  EXPECT_TRUE(Only<AllowGrowth>(Tell(SwapOutDone{kB, kGpu0})));
}

TEST_F(SchedulerAdminTest, ALoadDoesNotTakeTheRoomThatIsMadeForARequest) {
  Up(kGpu0, 100);
  constexpr InstanceId kD{4};
  Add(kA, 50);
  Add(kB, 50);
  Add(kC, 90);
  Add(kD, 40);
  MakeResident(kA, kGpu0);
  MakeResident(kB, kGpu0);
  EXPECT_EQ(Arrive(1, kC).size(), 2u) << "both leave";
  EXPECT_TRUE(Tell(LoadWanted{kD, std::nullopt}).empty());
  EXPECT_TRUE(Tell(SwapOutDone{kA, kGpu0}).empty());
  const auto swap_in = Only<SwapIn>(Tell(SwapOutDone{kB, kGpu0}));
  ASSERT_TRUE(swap_in);
  EXPECT_EQ(swap_in->instance, kC);
}

TEST_F(SchedulerAdminTest, ALoadThatFailsCostsNoRequestOnAnotherGpu) {
  Up(kGpu0, 100);
  Add(kA, 60);
  Add(kB, 30);
  MakeResident(kB, kGpu0);
  EXPECT_TRUE(Only<SwapIn>(Tell(LoadWanted{kA, kGpu0})));
  EXPECT_TRUE(Only<Grant>(Arrive(1, kB)));
  Up(kGpu1, 100);
  Arrive(2, kA);
  for (const Action& action : Tell(SwapInDone{kA, kGpu0, false})) {
    EXPECT_FALSE(std::holds_alternative<Refuse>(action));
  }
}

TEST_F(SchedulerAdminTest, SecondaryShardsAreLoadedToGpusOfTheirOwn) {
  Up(kGpu0, 100);
  Up(kGpu1, 100);
  for (const InstanceId id : {kB, kC}) Add(id, 60);
  MakeResident(kB, kGpu0);
  MakeResident(kC, kGpu1);
  constexpr InstanceId kFirst{8};
  constexpr InstanceId kSecond{9};
  Tell(InstanceAdded{kFirst, 1, {kSecond}});
  for (const InstanceId id : {kFirst, kSecond}) {
    Tell(GrowthWanted{GrowthId{id.value + 100}, id, 60});
  }
  EXPECT_EQ(Tell(LoadWanted{kFirst, std::nullopt}).size(), 2u);
  EXPECT_TRUE(Only<SwapIn>(Tell(SwapOutDone{kB, kGpu0})));
  EXPECT_TRUE(Only<SwapIn>(Tell(SwapOutDone{kC, kGpu1})));
}

TEST_F(SchedulerAdminTest, AShardThatDoesNotArriveEndsTheLoadOfAll) {
  Up(kGpu0, 100);
  Up(kGpu1, 100);
  Add(kB, 60);
  MakeResident(kB, kGpu0);
  constexpr InstanceId kFirst{8};
  constexpr InstanceId kSecond{9};
  Tell(InstanceAdded{kFirst, 1, {kSecond}});
  for (const InstanceId id : {kFirst, kSecond}) {
    Tell(GrowthWanted{GrowthId{id.value + 100}, id, 60});
  }
  const Actions actions = Tell(LoadWanted{kFirst, std::nullopt});
  ASSERT_EQ(actions.size(), 2u) << "one is sent for; the other's room is being made";
  const bool is_first = std::holds_alternative<SwapIn>(actions[0]);
  const auto& swap_in = std::get<SwapIn>(actions[is_first ? 0 : 1]);
  EXPECT_EQ(RefusalOf(Tell(SwapInDone{swap_in.instance, swap_in.gpu, false})),
            LoadRefusal::kSwapFailed);
  for (const InstanceId id : {kFirst, kSecond}) {
    EXPECT_FALSE(scheduler_.IsLoadWanted(id)) << id.value;
  }
  EXPECT_TRUE(Tell(SwapOutDone{kB, kGpu0}).empty()) << "no image comes for a wish that was refused";
}

TEST_F(SchedulerAdminTest, ALoadEndsWithItsExecutor) {
  Up(kGpu0, 100);
  Up(kGpu1, 100);
  Add(kA, 60);
  EXPECT_TRUE(Only<SwapIn>(Tell(LoadWanted{kA, kGpu0})));
  EXPECT_EQ(RefusalOf(Tell(ExecutorDown{kGpu0})), LoadRefusal::kSwapFailed);
  EXPECT_TRUE(Only<SwapIn>(Tell(LoadWanted{kA, kGpu1})));
  Tell(SwapInDone{kA, kGpu1, true});
  EXPECT_TRUE(Tell(ExecutorDown{kGpu1}).empty()) << "it had come";
}

TEST_F(SchedulerAdminTest, AGrowthWaitsForAnImageThatIsComing) {
  Up(kGpu0, 100);
  Add(kA, 60);
  Add(kB, 30);
  MakeResident(kB, kGpu0);
  EXPECT_TRUE(Only<SwapIn>(Tell(LoadWanted{kA, kGpu0})));
  EXPECT_TRUE(Tell(GrowthWanted{GrowthId{50}, kA, 20}).empty());
  const Actions actions = Tell(SwapInDone{kA, kGpu0, true});
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_EQ(std::get<SwapOut>(actions[0]).instance, kA) << "not worth the eviction of another";
  EXPECT_TRUE(std::holds_alternative<AllowGrowth>(actions[1]));
}

}  // namespace
}  // namespace torpor::scheduler
