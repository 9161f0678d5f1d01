// Images that move between GPUs with a fast link.
#include "tests/scheduler/scheduler_test.h"

namespace torpor::scheduler {
namespace {

constexpr GpuIndex kGpu2{2};

class SchedulerMovesTest : public SchedulerTest {
 protected:
  void SetUp() override {
    Up(kGpu0, 100, {kGpu1});
    Up(kGpu1, 100, {kGpu0});
    Add(kA, 60);
    MakeResident(kA, kGpu0);
  }

  bool IsOn(GpuIndex gpu) const {
    return scheduler_.node().instances.at(kA).image.copies.count(gpu) > 0;
  }
  Bytes UsedOn(GpuIndex gpu) const { return scheduler_.node().gpus.at(gpu).used; }
};

TEST_F(SchedulerMovesTest, AnImageComesFromTheGpuThatHasIt) {
  const auto swap_in = Only<SwapIn>(Tell(LoadWanted{kA, kGpu1}));
  ASSERT_TRUE(swap_in);
  EXPECT_EQ(swap_in->gpu, kGpu1);
  EXPECT_EQ(swap_in->source, kGpu0);
  EXPECT_TRUE(Tell(SwapInDone{kA, kGpu1, true}).empty());
  EXPECT_EQ(UsedOn(kGpu0), 60u) << "until it has left";
  EXPECT_TRUE(Only<Grant>(Arrive(1, kA))) << "meanwhile it is used";
  Tell(SwapOutDone{kA, kGpu0});
  EXPECT_EQ(UsedOn(kGpu0), 0u);
  EXPECT_TRUE(IsOn(kGpu1));
}

TEST_F(SchedulerMovesTest, ItMayLeaveBeforeItIsSaidToHaveCome) {
  ASSERT_TRUE(Only<SwapIn>(Tell(LoadWanted{kA, kGpu1})));
  Tell(SwapOutDone{kA, kGpu0});
  Tell(SwapInDone{kA, kGpu1, true});
  EXPECT_FALSE(IsOn(kGpu0));
  EXPECT_TRUE(IsOn(kGpu1));
}

TEST_F(SchedulerMovesTest, ItStaysUntilThereIsRoom) {
  Add(kB, 60);
  MakeResident(kB, kGpu1);
  const auto swap_out = Only<SwapOut>(Tell(LoadWanted{kA, kGpu1}));
  ASSERT_TRUE(swap_out);
  EXPECT_EQ(swap_out->instance, kB);
  const auto swap_in = Only<SwapIn>(Tell(SwapOutDone{kB, kGpu1}));
  ASSERT_TRUE(swap_in);
  EXPECT_EQ(swap_in->source, kGpu0);
}

TEST_F(SchedulerMovesTest, ASourceThatDiesIsForgotten) {
  ASSERT_TRUE(Only<SwapIn>(Tell(LoadWanted{kA, kGpu1})));
  Tell(ExecutorDown{kGpu0});
  Tell(SwapOutDone{kA, kGpu0});
  EXPECT_TRUE(Tell(SwapInDone{kA, kGpu1, true}).empty());
  EXPECT_TRUE(Only<Grant>(Arrive(1, kA)));
}

TEST_F(SchedulerMovesTest, AMoveThatFailsLeavesItNowhere) {
  ASSERT_TRUE(Only<SwapIn>(Tell(LoadWanted{kA, kGpu1})));
  Tell(SwapInDone{kA, kGpu1, false});
  EXPECT_TRUE(Arrive(1, kA).empty()) << "its copy must go first, which is old from the next lease";
  EXPECT_TRUE(Only<SwapIn>(Tell(SwapOutDone{kA, kGpu0})));
}

TEST_F(SchedulerMovesTest, WhatLeavesIsAsLargeAsItWas) {
  ASSERT_TRUE(Only<SwapIn>(Tell(LoadWanted{kA, kGpu1})));
  Tell(SwapInDone{kA, kGpu1, true});
  Tell(ImageShrunk{kA, 20});
  EXPECT_EQ(UsedOn(kGpu0), 60u);
  EXPECT_EQ(UsedOn(kGpu1), 40u);
}

TEST_F(SchedulerMovesTest, WithoutAFastLinkItComesFromTheHost) {
  Up(kGpu2, 100);
  const auto swap_out = Only<SwapOut>(Tell(LoadWanted{kA, kGpu2}));
  ASSERT_TRUE(swap_out);
  EXPECT_EQ(swap_out->reason, SwapOutReason::kMove);
}

TEST_F(SchedulerMovesTest, WhatHasCompanionsComesFromTheHost) {
  Tell(InstanceAdded{kB, 1, {kC}});
  Tell(GrowthWanted{GrowthId{100}, kB, 10});
  Arrive(1, kB);
  for (const InstanceId shard : {kB, kC}) {
    const GpuIndex gpu = scheduler_.node().instances.at(shard).tenancy.gpu;
    Tell(SwapInDone{shard, gpu, true});
  }
  Tell(RequestGone{RequestId{1}});
  Tell(LeaseEnded{kB});
  Up(kGpu2, 100, {kGpu0, kGpu1});
  ASSERT_TRUE(Only<Grant>(Arrive(2, kA)));
  const Actions actions = Arrive(3, kB);
  EXPECT_FALSE(actions.empty());
  for (const Action& action : actions) EXPECT_TRUE(std::holds_alternative<SwapOut>(action));
}

TEST_F(SchedulerMovesTest, OfFreeGpusTheNearestToItsCopyIsChosen) {
  constexpr GpuIndex kNear{3};
  Up(kGpu2, 200);
  Up(kNear, 90, {kGpu0});
  Up(kGpu0, 100, {kNear, kGpu1});
  Tell(LoadWanted{kA, kGpu0});
  Tell(SwapInDone{kA, kGpu0, true});
  Add(kB, 30);
  Tell(LoadWanted{kB, kGpu0});
  Tell(SwapInDone{kB, kGpu0, true});
  ASSERT_TRUE(Only<Grant>(Arrive(1, kB)));
  const auto swap_in = Only<SwapIn>(Arrive(2, kA));
  ASSERT_TRUE(swap_in);
  EXPECT_EQ(swap_in->gpu, kNear);
  EXPECT_EQ(swap_in->source, kGpu0);
}

}  // namespace
}  // namespace torpor::scheduler
