#include "tests/scheduler/scheduler_test.h"

#include <gtest/gtest.h>

namespace torpor::scheduler {
namespace {

TEST_F(SchedulerTest, SwapsInAndGrants) {
  Up(kGpu0, 100);
  Add(kA, 60);
  const auto swap_in = Only<SwapIn>(Arrive(1, kA));
  ASSERT_TRUE(swap_in);
  EXPECT_EQ(swap_in->instance, kA);
  EXPECT_EQ(swap_in->gpu, kGpu0);
  const auto grant = Only<Grant>(Tell(SwapInDone{kA, kGpu0, true}));
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->request, RequestId{1});
  EXPECT_TRUE(Only<Revoke>(Tell(RequestGone{RequestId{1}})));
  EXPECT_TRUE(Tell(LeaseEnded{kA}).empty());
}

TEST_F(SchedulerTest, ResidentImageNeedsNoSwap) {
  Up(kGpu0, 100);
  Add(kA, 60);
  MakeResident(kA, kGpu0);
  EXPECT_TRUE(Only<Grant>(Arrive(1, kA)));
}

TEST_F(SchedulerTest, ServesInOrderOfArrival) {
  Up(kGpu0, 100);
  Add(kA, 10);
  Add(kB, 10);
  Add(kC, 10);
  for (const InstanceId instance : {kA, kB, kC}) MakeResident(instance, kGpu0);
  EXPECT_TRUE(Only<Grant>(Arrive(1, kA)));
  EXPECT_TRUE(Arrive(2, kC).empty());
  EXPECT_TRUE(Arrive(3, kB).empty());
  Tell(RequestGone{RequestId{1}});
  const auto next = Only<Grant>(Tell(LeaseEnded{kA}));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->request, RequestId{2});
}

TEST_F(SchedulerTest, OneLeaseAnInstanceButOthersPass) {
  Up(kGpu0, 100);
  Up(kGpu1, 100);
  Add(kA, 10);
  Add(kB, 10);
  MakeResident(kA, kGpu0);
  EXPECT_TRUE(Only<Grant>(Arrive(1, kA)));
  EXPECT_TRUE(Arrive(2, kA).empty());
  const auto swap_in = Only<SwapIn>(Arrive(3, kB));
  ASSERT_TRUE(swap_in);
  EXPECT_EQ(swap_in->gpu, kGpu1);
}

TEST_F(SchedulerTest, EvictsTheLeastRecentlyUsed) {
  Up(kGpu0, 100);
  Add(kA, 50);
  Add(kB, 50);
  Add(kC, 50);
  MakeResident(kA, kGpu0);
  Advance(std::chrono::seconds(1));
  MakeResident(kB, kGpu0);
  Advance(std::chrono::seconds(1));
  const auto swap_out = Only<SwapOut>(Arrive(1, kC));
  ASSERT_TRUE(swap_out);
  EXPECT_EQ(swap_out->instance, kA);
  EXPECT_EQ(swap_out->reason, SwapOutReason::kMemoryFull);
  EXPECT_TRUE(Only<SwapIn>(Tell(SwapOutDone{kA, kGpu0})));
}

TEST_F(SchedulerTest, EvictsNoMoreThanItMust) {
  Up(kGpu0, 100);
  Add(kA, 40);
  Add(kB, 40);
  Add(kC, 30);
  MakeResident(kA, kGpu0);
  MakeResident(kB, kGpu0);
  EXPECT_TRUE(Only<SwapOut>(Arrive(1, kC)));
}

TEST_F(SchedulerTest, MoveWritesBackFirst) {
  Up(kGpu0, 100);
  Up(kGpu1, 100);
  Add(kA, 40);
  Add(kB, 40);
  MakeResident(kA, kGpu0);
  MakeResident(kB, kGpu1);
  Tell(ExecutorDown{kGpu1});
  Arrive(1, kB);  // swaps in on GPU 0
  Tell(SwapInDone{kB, kGpu0, true});
  Up(kGpu1, 100);
  const auto swap_out = Only<SwapOut>(Arrive(2, kA));
  ASSERT_TRUE(swap_out);
  EXPECT_EQ(swap_out->gpu, kGpu0);
  EXPECT_EQ(swap_out->reason, SwapOutReason::kMove);
  const auto swap_in = Only<SwapIn>(Tell(SwapOutDone{kA, kGpu0}));
  ASSERT_TRUE(swap_in);
  EXPECT_EQ(swap_in->gpu, kGpu1);
}

TEST_F(SchedulerTest, RefusesAnImageLargerThanAnyGpu) {
  Up(kGpu0, 100);
  Tell(InstanceAdded{kA, 1, {}});
  EXPECT_TRUE(Only<RefuseGrowth>(Tell(GrowthWanted{GrowthId{1}, kA, 101})));
  EXPECT_TRUE(Only<AllowGrowth>(Tell(GrowthWanted{GrowthId{2}, kA, 100})));
}

TEST_F(SchedulerTest, FailedSwapRefusesOneRequest) {
  Up(kGpu0, 100);
  Add(kA, 10);
  Arrive(1, kA);
  Arrive(2, kA);
  const Actions actions = Tell(SwapInDone{kA, kGpu0, false});
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_EQ(std::get<Refuse>(actions[0]).request, RequestId{1});
  EXPECT_TRUE(std::holds_alternative<SwapIn>(actions[1]));
}

TEST_F(SchedulerTest, RequestRevokesAnImplicitLease) {
  Up(kGpu0, 100);
  Add(kA, 10);
  Add(kB, 10);
  Arrive(1, kA, true);
  EXPECT_TRUE(Only<Grant>(Tell(SwapInDone{kA, kGpu0, true})));
  const auto wake_up = Only<WakeUp>(Arrive(2, kB));
  ASSERT_TRUE(wake_up);
  Advance(wake_up->when - now_);
  EXPECT_TRUE(Only<Revoke>(Tell(TimePassed{})));
  EXPECT_TRUE(Tell(TimePassed{}).empty());
  EXPECT_TRUE(Only<SwapIn>(Tell(LeaseEnded{kA})));
}

TEST_F(SchedulerTest, ImplicitLeaseStaysWhileNobodyWaits) {
  Up(kGpu0, 100);
  Up(kGpu1, 100);
  Add(kA, 10);
  Add(kB, 10);
  Arrive(1, kA, true);
  Tell(SwapInDone{kA, kGpu0, true});
  Advance(std::chrono::seconds(10));
  EXPECT_TRUE(Only<SwapIn>(Arrive(2, kB)));  // the other GPU is free
}

TEST_F(SchedulerTest, OwnRequestRevokesTheProgramsImplicitLease) {
  Up(kGpu0, 100);
  Up(kGpu1, 100);
  Add(kA, 10);
  Arrive(1, kA, true);
  Tell(SwapInDone{kA, kGpu0, true});
  Advance(std::chrono::seconds(1));
  EXPECT_TRUE(Only<Revoke>(Arrive(2, kA)));
  const auto grant = Only<Grant>(Tell(LeaseEnded{kA}));
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->request, RequestId{2});
}

TEST_F(SchedulerTest, RequestsShareALeaseUntilSomebodyWaits) {
  Up(kGpu0, 100);
  Add(kA, 10, 3);
  Add(kB, 10);
  MakeResident(kA, kGpu0);
  Arrive(1, kA);
  const auto second = Only<Grant>(Arrive(2, kA));
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->joins);
  EXPECT_TRUE(Arrive(3, kB).empty());
  EXPECT_TRUE(Arrive(4, kA).empty());
  EXPECT_TRUE(Tell(RequestGone{RequestId{1}}).empty());
  EXPECT_TRUE(Only<Revoke>(Tell(RequestGone{RequestId{2}})));
}

TEST_F(SchedulerTest, RequestThatGoesWhileItsImageComes) {
  Up(kGpu0, 100);
  Add(kA, 10);
  Add(kB, 10);
  Arrive(1, kA);
  EXPECT_TRUE(Arrive(2, kB).empty());
  EXPECT_TRUE(Tell(RequestGone{RequestId{1}}).empty());
  const auto swap_in = Only<SwapIn>(Tell(SwapInDone{kA, kGpu0, true}));
  ASSERT_TRUE(swap_in);
  EXPECT_EQ(swap_in->instance, kB);
}

TEST_F(SchedulerTest, ExecutorsDeathForgetsResidencyAndKeepsTheQueue) {
  Up(kGpu0, 100);
  Add(kA, 10);
  Add(kB, 10);
  MakeResident(kA, kGpu0);
  Arrive(1, kA);
  Arrive(2, kB);
  EXPECT_TRUE(Tell(ExecutorDown{kGpu0}).empty());
  EXPECT_TRUE(scheduler_.node().instances.at(kA).image.copies.empty());
  const auto swap_in = Only<SwapIn>(Tell(ExecutorUp{kGpu0, 100}));
  ASSERT_TRUE(swap_in);
  EXPECT_EQ(swap_in->instance, kB);
}

TEST_F(SchedulerTest, QueuedRequestGoesToAnotherGpuWhenItsOwnDies) {
  Up(kGpu0, 100);
  Add(kA, 10);
  Arrive(1, kA);
  Up(kGpu1, 100);
  const auto swap_in = Only<SwapIn>(Tell(ExecutorDown{kGpu0}));
  ASSERT_TRUE(swap_in);
  EXPECT_EQ(swap_in->gpu, kGpu1);
  EXPECT_TRUE(Tell(SwapInDone{kA, kGpu0, true}).empty());  // of the dead one
}

TEST_F(SchedulerTest, GrowthUnderALeaseEvictsOthers) {
  Up(kGpu0, 100);
  Add(kA, 40);
  Add(kB, 50);
  MakeResident(kA, kGpu0);
  MakeResident(kB, kGpu0);
  Arrive(1, kB);
  EXPECT_TRUE(Only<AllowGrowth>(Tell(GrowthWanted{GrowthId{90}, kB, 10})));
  const auto swap_out = Only<SwapOut>(Tell(GrowthWanted{GrowthId{91}, kB, 5}));
  ASSERT_TRUE(swap_out);
  EXPECT_EQ(swap_out->instance, kA);
  const auto allow = Only<AllowGrowth>(Tell(SwapOutDone{kA, kGpu0}));
  ASSERT_TRUE(allow);
  EXPECT_EQ(allow->growth, GrowthId{91});
  EXPECT_TRUE(Only<RefuseGrowth>(Tell(GrowthWanted{GrowthId{92}, kB, 36})));
}

TEST_F(SchedulerTest, GrowthOfAnIdleImageEvictsItself) {
  Up(kGpu0, 100);
  Add(kA, 40);
  Add(kB, 50);
  MakeResident(kA, kGpu0);
  MakeResident(kB, kGpu0);
  const Actions actions = Tell(GrowthWanted{GrowthId{90}, kA, 20});
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_EQ(std::get<SwapOut>(actions[0]).instance, kA);
  EXPECT_TRUE(std::holds_alternative<AllowGrowth>(actions[1]));
}

TEST_F(SchedulerTest, ShrinkingMakesRoom) {
  Up(kGpu0, 100);
  Add(kA, 60);
  Add(kB, 60);
  MakeResident(kA, kGpu0);
  Tell(ImageShrunk{kA, 20});
  EXPECT_TRUE(Only<SwapIn>(Arrive(1, kB)));
}

// kA with its secondary shard kB.
class PairTest : public SchedulerTest {
 protected:
  PairTest() {
    Up(kGpu0, 100);
    Up(kGpu1, 100);
    Tell(InstanceAdded{kA, 1, {kB}});
    Tell(GrowthWanted{GrowthId{next_growth_++}, kA, 40});
    Tell(GrowthWanted{GrowthId{next_growth_++}, kB, 60});
  }
  void MakePairResident() {
    Tell(RequestArrived{RequestId{1000}, kA, TimePoint::max(), false});
    Tell(SwapInDone{kA, kGpu0, true});
    Tell(SwapInDone{kB, kGpu1, true});
    Tell(RequestGone{RequestId{1000}});
    Tell(LeaseEnded{kA});
  }
};

TEST_F(PairTest, IsGrantedWhenBothImagesAreThere) {
  const Actions swaps = Arrive(1, kA);
  ASSERT_EQ(swaps.size(), 2u);
  EXPECT_EQ(std::get<SwapIn>(swaps[0]).instance, kA);
  EXPECT_EQ(std::get<SwapIn>(swaps[0]).gpu, kGpu0);
  EXPECT_EQ(std::get<SwapIn>(swaps[1]).instance, kB);
  EXPECT_EQ(std::get<SwapIn>(swaps[1]).gpu, kGpu1);
  EXPECT_TRUE(Tell(SwapInDone{kB, kGpu1, true}).empty());
  const auto grant = Only<Grant>(Tell(SwapInDone{kA, kGpu0, true}));
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->instance, kA);
  EXPECT_EQ(grant->gpu, kGpu0);
  EXPECT_EQ(grant->secondary_gpus, std::vector<GpuIndex>{kGpu1});
}

TEST_F(PairTest, TakesBothGpusOrNone) {
  Add(kC, 10);
  MakeResident(kC, kGpu0);
  EXPECT_TRUE(Only<Grant>(Arrive(1, kC)));
  EXPECT_TRUE(Arrive(2, kA).empty());
  // The other GPU is free, but whoever comes later does not get it first.
  Add(InstanceId{9}, 10);
  EXPECT_TRUE(Arrive(3, InstanceId{9}).empty());
  Tell(RequestGone{RequestId{1}});
  const Actions swaps = Tell(LeaseEnded{kC});
  ASSERT_EQ(swaps.size(), 2u);
  EXPECT_EQ(std::get<SwapIn>(swaps[0]).instance, kA);
  EXPECT_EQ(std::get<SwapIn>(swaps[1]).instance, kB);
}

TEST_F(PairTest, AnImplicitLeaseGivesWayToARequestOnEitherGpu) {
  MakePairResident();
  Add(kC, 10);
  EXPECT_TRUE(Only<Grant>(Arrive(1, kA, /*is_implicit=*/true)));
  Advance(std::chrono::seconds(1));
  const auto revoke = Only<Revoke>(Arrive(2, kC));
  ASSERT_TRUE(revoke);
  EXPECT_EQ(revoke->instance, kA);
  EXPECT_TRUE(Only<SwapIn>(Tell(LeaseEnded{kA})));
}

TEST_F(PairTest, RevokesAsManyLeasesAsItNeedsGpus) {
  Add(kC, 10);
  const InstanceId other{9};
  Add(other, 10);
  MakeResident(kC, kGpu0);
  EXPECT_TRUE(Only<Grant>(Arrive(1, kC, /*is_implicit=*/true)));
  Arrive(2, other, /*is_implicit=*/true);
  EXPECT_TRUE(Only<Grant>(Tell(SwapInDone{other, kGpu1, true})));
  Advance(std::chrono::seconds(1));
  const Actions revokes = Arrive(3, kA);
  ASSERT_EQ(revokes.size(), 2u);
  EXPECT_EQ(std::get<Revoke>(revokes[0]).instance, kC);
  EXPECT_EQ(std::get<Revoke>(revokes[1]).instance, other);
}

TEST_F(PairTest, LosesItsLeaseWithEitherGpu) {
  MakePairResident();
  EXPECT_TRUE(Only<Grant>(Arrive(1, kA)));
  EXPECT_TRUE(Tell(ExecutorDown{kGpu1}).empty());
  Add(kC, 10);
  const auto swap_in = Only<SwapIn>(Arrive(2, kC));
  ASSERT_TRUE(swap_in);
  EXPECT_EQ(swap_in->gpu, kGpu0);
}

TEST_F(PairTest, GrowsEachImageByItself) {
  MakePairResident();
  EXPECT_TRUE(Only<AllowGrowth>(Tell(GrowthWanted{GrowthId{77}, kB, 40})));
  EXPECT_TRUE(Only<RefuseGrowth>(Tell(GrowthWanted{GrowthId{78}, kB, 1})));
  EXPECT_TRUE(Only<AllowGrowth>(Tell(GrowthWanted{GrowthId{79}, kA, 60})));
}

}  // namespace
}  // namespace torpor::scheduler
