#include <gtest/gtest.h>

#include "tests/scheduler/scheduler_test.h"

// What is done on GPUs that have nothing to do.
namespace torpor::scheduler {
namespace {

constexpr Duration kIdle = std::chrono::seconds(1);
constexpr Duration kShort = std::chrono::milliseconds(300);

class SchedulerIdleTest : public SchedulerTest {
 protected:
  SchedulerIdleTest() : SchedulerTest(SchedulerOptions{.idle_write_back = kIdle}) {
    Up(kGpu0, 100);
  }

  void PassIdleTime() {
    Advance(kIdle);
    actions_ = Tell(TimePassed{});
  }
  InstanceId Saved() const {
    const auto action = Only<WriteBack>(actions_);
    return action ? action->instance : InstanceId{};
  }

  Actions actions_;
};

TEST_F(SchedulerIdleTest, AnImageThatALeaseMayHaveChangedIsWrittenBack) {
  Add(kA, 40);
  Arrive(1, kA);
  Tell(SwapInDone{kA, kGpu0, true});
  Tell(RequestGone{RequestId{1}});
  const auto wake_up = Only<WakeUp>(Tell(LeaseEnded{kA}));
  ASSERT_TRUE(wake_up);
  EXPECT_EQ(wake_up->when, now_ + kIdle);
  Advance(kIdle);
  const auto action = Only<WriteBack>(Tell(TimePassed{}));
  ASSERT_TRUE(action);
  EXPECT_EQ(action->instance, kA);
  EXPECT_EQ(action->gpu, kGpu0);
  EXPECT_TRUE(Tell(TimePassed{}).empty()) << "it is under way";
  EXPECT_TRUE(Tell(WriteBackDone{kA, kGpu0, true}).empty());
  PassIdleTime();
  EXPECT_TRUE(actions_.empty()) << "nothing has changed since";
}

TEST_F(SchedulerIdleTest, WhatWasOnlyLoadedNeedsNoWriteBack) {
  Add(kA, 40);
  Tell(LoadWanted{kA, kGpu0});
  Tell(SwapInDone{kA, kGpu0, true});
  PassIdleTime();
  EXPECT_TRUE(actions_.empty());
}

TEST_F(SchedulerIdleTest, PartsFollowEachOtherUntilAllIsWritten) {
  Add(kA, 40);
  MakeResident(kA, kGpu0);
  PassIdleTime();
  EXPECT_EQ(Saved(), kA);
  actions_ = Tell(WriteBackDone{kA, kGpu0, false});
  EXPECT_EQ(Saved(), kA) << "at once: the GPU has not had anything to do meanwhile";
  EXPECT_TRUE(Tell(WriteBackDone{kA, kGpu0, true}).empty());
}

TEST_F(SchedulerIdleTest, OneImageAfterAnotherTheLeastRecentlyUsedFirst) {
  Add(kA, 40);
  Add(kB, 40);
  MakeResident(kB, kGpu0);
  Advance(kShort);
  MakeResident(kA, kGpu0);
  PassIdleTime();
  EXPECT_EQ(Saved(), kB);
  actions_ = Tell(WriteBackDone{kB, kGpu0, true});
  EXPECT_EQ(Saved(), kA);
}

TEST_F(SchedulerIdleTest, ALeaseBeginsTheIdleTimeAgain) {
  Add(kA, 40);
  MakeResident(kA, kGpu0);
  Advance(kShort);
  EXPECT_TRUE(Only<Grant>(Arrive(1, kA)));
  Advance(kIdle);
  EXPECT_TRUE(Tell(TimePassed{}).empty());
  Tell(RequestGone{RequestId{1}});
  EXPECT_TRUE(Only<WakeUp>(Tell(LeaseEnded{kA})));
  Advance(kShort);
  EXPECT_TRUE(Tell(TimePassed{}).empty());
  PassIdleTime();
  EXPECT_EQ(Saved(), kA);
}

TEST_F(SchedulerIdleTest, ARequestIsGrantedWhileAPartIsWrittenBack) {
  Add(kA, 40);
  MakeResident(kA, kGpu0);
  PassIdleTime();
  ASSERT_EQ(Saved(), kA);
  EXPECT_TRUE(Only<Grant>(Arrive(1, kA)));
  EXPECT_TRUE(Tell(WriteBackDone{kA, kGpu0, true}).empty());
  Tell(RequestGone{RequestId{1}});
  Tell(LeaseEnded{kA});
  PassIdleTime();
  EXPECT_EQ(Saved(), kA) << "the answer was of what the lease has changed since";
}

TEST_F(SchedulerIdleTest, NothingIsWrittenBackWhileAnImageComesOrLeaves) {
  Add(kA, 60);
  Add(kB, 60);
  Add(kC, 20);
  MakeResident(kA, kGpu0);
  Tell(LoadWanted{kC, kGpu0});
  PassIdleTime();
  EXPECT_TRUE(actions_.empty());
  EXPECT_TRUE(Only<WakeUp>(Tell(SwapInDone{kC, kGpu0, true})));
  PassIdleTime();
  EXPECT_EQ(Saved(), kA);
  EXPECT_TRUE(Only<SwapOut>(Tell(EvictionWanted{kA}))) << "whatever is under way";
  EXPECT_TRUE(Tell(WriteBackDone{kA, kGpu0, false}).empty());
  EXPECT_TRUE(Tell(SwapOutDone{kA, kGpu0}).empty());
}

TEST_F(SchedulerIdleTest, AGpuThatSomebodyWaitsForIsNotIdle) {
  Up(kGpu1, 100);
  Tell(InstanceAdded{kB, 1, {kC}});  // needs both GPUs
  Add(kA, 40);
  MakeResident(kA, kGpu0);
  Arrive(1, kA, true);
  Arrive(2, kB);
  PassIdleTime();
  EXPECT_TRUE(scheduler_.node().gpus.at(kGpu0).tenant);
  EXPECT_FALSE(scheduler_.node().gpus.at(kGpu1).idle_since);
}

TEST_F(SchedulerIdleTest, WhoWaitsForItsInstancesLeaseKeepsNoOtherGpuFromIdling) {
  Up(kGpu1, 100);
  Add(kA, 40);
  Add(kB, 40);
  MakeResident(kA, kGpu0);
  Arrive(1, kB);
  const GpuIndex other = scheduler_.node().instances.at(kB).tenancy.gpu;
  ASSERT_EQ(other, kGpu1);
  Tell(SwapInDone{kB, kGpu1, true});
  Arrive(2, kB);
  PassIdleTime();
  EXPECT_EQ(Saved(), kA);
}

TEST_F(SchedulerIdleTest, AnExecutorThatDiesTakesItsWriteBackWithIt) {
  Add(kA, 40);
  MakeResident(kA, kGpu0);
  PassIdleTime();
  ASSERT_EQ(Saved(), kA);
  EXPECT_TRUE(Tell(ExecutorDown{kGpu0}).empty());
  EXPECT_TRUE(Tell(ExecutorUp{kGpu0, 100}).empty());
  EXPECT_TRUE(Tell(WriteBackDone{kA, kGpu0, true}).empty());
  PassIdleTime();
  EXPECT_TRUE(actions_.empty());
}

}  // namespace
}  // namespace torpor::scheduler
