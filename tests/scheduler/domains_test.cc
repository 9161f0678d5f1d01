// Executors of one GPU that serve different domains: one dies, or makes place.
#include "tests/scheduler/scheduler_test.h"

namespace torpor::scheduler {
namespace {

// A and B are on GPU 0, each in a domain of its own.
class DomainsTest : public SchedulerTest {
 protected:
  DomainsTest() {
    Up(kGpu0, 100);
    Add(kA, 40);
    Add(kB, 40);
    MakeResident(kA, kGpu0);
    MakeResident(kB, kGpu0);
  }
  bool IsOnGpu(InstanceId instance) const {
    return scheduler_.node().instances.at(instance).image.copies.contains(kGpu0);
  }
};

TEST_F(DomainsTest, ALossCostsItsOwnImagesOnly) {
  EXPECT_TRUE(Tell(ImagesLost{kGpu0, {kA}}).empty());
  EXPECT_FALSE(IsOnGpu(kA));
  EXPECT_TRUE(IsOnGpu(kB));
  EXPECT_EQ(scheduler_.node().gpus.at(kGpu0).used, 40u);
  EXPECT_TRUE(Only<Grant>(Arrive(1, kB))) << "the GPU serves on";
}

TEST_F(DomainsTest, TheHoldersLeaseEndsWithItsExecutor) {
  ASSERT_TRUE(Only<Grant>(Arrive(1, kA)));
  EXPECT_TRUE(Arrive(2, kB).empty());
  const auto grant = Only<Grant>(Tell(ImagesLost{kGpu0, {kA}}));
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->instance, kB);
}

TEST_F(DomainsTest, AnothersLeaseGoesOn) {
  ASSERT_TRUE(Only<Grant>(Arrive(1, kB)));
  EXPECT_TRUE(Tell(ImagesLost{kGpu0, {kA}}).empty());
  EXPECT_TRUE(Arrive(2, kA).empty());
  EXPECT_TRUE(Tell(InstancesServed{kGpu0, {kA}}).empty());
  Tell(RequestGone{RequestId{1}, Ending::kAnswered});
  const auto swap_in = Only<SwapIn>(Tell(LeaseEnded{kB}));
  ASSERT_TRUE(swap_in);
  EXPECT_EQ(swap_in->instance, kA);
}

TEST_F(DomainsTest, WithoutItsExecutorARequestWaitsAndHoldsNoGpu) {
  Tell(ImagesLost{kGpu0, {kA}});
  Tell(InstancesServed{kGpu0, {kA}});
  ASSERT_TRUE(Only<SwapIn>(Arrive(1, kA)));
  EXPECT_TRUE(Tell(ImagesLost{kGpu0, {kA}}).empty()) << "the executor is not there";
  EXPECT_TRUE(Only<Grant>(Arrive(2, kB))) << "the GPU is free for others";
  Tell(RequestGone{RequestId{2}, Ending::kAnswered});
  EXPECT_TRUE(Tell(LeaseEnded{kB}).empty());
  EXPECT_TRUE(Only<SwapIn>(Tell(InstancesServed{kGpu0, {kA}})));
}

TEST_F(DomainsTest, AGpuThatComesBackServesEverybody) {
  Tell(ImagesLost{kGpu0, {kA}});
  EXPECT_TRUE(Arrive(1, kA).empty());
  Tell(ExecutorDown{kGpu0});
  EXPECT_TRUE(Only<SwapIn>(Tell(ExecutorUp{kGpu0, 100})));
}

TEST_F(DomainsTest, WhoMakesPlaceLeavesUnlessInUse) {
  const auto swap_out = Only<SwapOut>(Tell(ImagesUnwanted{kGpu0, {kA}}));
  ASSERT_TRUE(swap_out);
  EXPECT_EQ(swap_out->instance, kA);
  EXPECT_TRUE(Tell(ImagesUnwanted{kGpu0, {kA}}).empty()) << "it leaves already";
  Tell(SwapOutDone{kA, kGpu0});
  EXPECT_FALSE(IsOnGpu(kA));
  ASSERT_TRUE(Only<Grant>(Arrive(1, kB)));
  EXPECT_TRUE(Tell(ImagesUnwanted{kGpu0, {kB}}).empty()) << "it has the GPU";
  EXPECT_TRUE(Tell(ImagesUnwanted{kGpu1, {kB}}).empty()) << "there is no such GPU";
}

}  // namespace
}  // namespace torpor::scheduler
