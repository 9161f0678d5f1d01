#include "tests/scheduler/scheduler_test.h"

namespace torpor::scheduler {
namespace {

constexpr FunctionId kRemoved{9};

// A, of function 9, is on GPU 0, which is full of it.
class RemovalTest : public SchedulerTest {
 protected:
  RemovalTest() {
    Up(kGpu0, 100);
    Tell(FunctionSet{.function = kRemoved, .keep_alive = std::chrono::seconds(1)});
    Tell(InstanceAdded{kA, 1, {}, kRemoved});
    Tell(GrowthWanted{GrowthId{1}, kA, 100});
    MakeResident(kA, kGpu0);
  }
};

TEST_F(RemovalTest, ItsMemoryIsFreeAndItIsForgotten) {
  Tell(ImageShrunk{kA, 100});
  ASSERT_TRUE(scheduler_.MayRemove(kA));
  EXPECT_TRUE(Tell(InstanceRemoved{kA}).empty());
  EXPECT_TRUE(Tell(FunctionRemoved{kRemoved}).empty());
  EXPECT_TRUE(scheduler_.node().instances.empty());
  EXPECT_TRUE(scheduler_.node().functions.empty());
  EXPECT_EQ(scheduler_.node().gpus.at(kGpu0).used, 0u);
  Advance(std::chrono::hours(3));  // its outcomes and its keep_alive would end
  EXPECT_TRUE(Tell(TimePassed{}).empty());
  // The same names may come again.
  Tell(FunctionSet{.function = kRemoved});
  Tell(InstanceAdded{kA, 1, {}, kRemoved});
  EXPECT_EQ(scheduler_.node().functions.at(kRemoved).finished, 0u);
}

TEST_F(RemovalTest, ATenantOfAnUnsetWeightIsForgotten) {
  Tell(TenantSet{TenantId{7}, 2.5});
  EXPECT_EQ(scheduler_.node().WeightOf(TenantId{7}), 2.5);
  Tell(TenantSet{TenantId{7}});
  EXPECT_EQ(scheduler_.node().WeightOf(TenantId{7}), 1);
  EXPECT_TRUE(scheduler_.node().tenants.empty());
}

TEST_F(RemovalTest, AnImageWithBytesLeavesWithItsInstance) {
  Add(kB, 100);
  Tell(InstanceRemoved{kA});
  const auto swap_in = Only<SwapIn>(Arrive(1, kB));
  ASSERT_TRUE(swap_in) << "there is room";
  EXPECT_EQ(swap_in->instance, kB);
}

TEST_F(RemovalTest, WhoIsInUseStays) {
  Arrive(1, kA);
  EXPECT_FALSE(scheduler_.MayRemove(kA)) << "a request runs";
  Arrive(2, kA);
  Tell(RequestGone{RequestId{1}, Ending::kAnswered});
  EXPECT_FALSE(scheduler_.MayRemove(kA)) << "the lease is revoked, and a request waits";
  Tell(RequestGone{RequestId{2}, Ending::kCancelled});
  EXPECT_FALSE(scheduler_.MayRemove(kA)) << "the lease has not ended";
  Tell(LeaseEnded{kA});
  EXPECT_TRUE(scheduler_.MayRemove(kA));
  Tell(EvictionWanted{kA});
  EXPECT_FALSE(scheduler_.MayRemove(kA)) << "the image leaves";
  Tell(SwapOutDone{kA, kGpu0});
  EXPECT_TRUE(scheduler_.MayRemove(kA));
}

TEST_F(RemovalTest, ALeavingInstanceGetsNothingWhileThereIsAnother) {
  Tell(InstanceAdded{kB, 1, {}, kRemoved});
  Tell(HealthChanged{kB, Health::kDown});
  Tell(HealthChanged{kA, Health::kLeaving});
  Tell(RequestArrived{.request = RequestId{1}, .function = kRemoved});
  EXPECT_TRUE(scheduler_.node().instances.at(kA).waiting.empty());
  Tell(InstanceRemoved{kA});
  EXPECT_EQ(scheduler_.node().functions.at(kRemoved).instances, std::vector<InstanceId>{kB});
}

}  // namespace
}  // namespace torpor::scheduler
