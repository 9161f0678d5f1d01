#include "tests/scheduler/scheduler_test.h"

namespace torpor::scheduler {
namespace {

constexpr FunctionId kFunction{9};

// Function 9 with instances A and B, and two GPUs.
class InstanceHealthTest : public SchedulerTest {
 protected:
  InstanceHealthTest() {
    for (const GpuIndex gpu : {kGpu0, kGpu1}) Up(gpu, 100);
    Tell(FunctionSet{.function = kFunction});
    for (const InstanceId id : {kA, kB}) {
      Tell(InstanceAdded{id, 1, {}, kFunction});
      Tell(GrowthWanted{GrowthId{id.value}, id, 10});
    }
  }

  Actions ArriveForAny(std::uint64_t request) {
    return Tell(RequestArrived{.request = RequestId{request}, .function = kFunction});
  }
  // The instance whose image is sent for.
  static InstanceId SentFor(const Actions& actions) {
    const auto swap_in = Only<SwapIn>(actions);
    return swap_in ? swap_in->instance : InstanceId{};
  }
  // The instance that gets its lease with the image's arrival.
  std::optional<Grant> Arrived(InstanceId instance, GpuIndex gpu) {
    return Only<Grant>(Tell(SwapInDone{instance, gpu}));
  }
};

TEST_F(InstanceHealthTest, BothInstancesRunAtOneTime) {
  EXPECT_EQ(SentFor(ArriveForAny(1)), kA);
  EXPECT_EQ(SentFor(ArriveForAny(2)), kB);
  const auto first = Arrived(kA, kGpu0);
  const auto second = Arrived(kB, kGpu1);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->request, RequestId{1});
  EXPECT_EQ(second->request, RequestId{2});
}

TEST_F(InstanceHealthTest, RequestsGoToInstancesOfTheBestHealth) {
  Tell(HealthChanged{kA, Health::kDown});
  EXPECT_EQ(SentFor(ArriveForAny(1)), kB);
  EXPECT_TRUE(ArriveForAny(2).empty()) << "it waits for B rather than to run on A";
  Tell(HealthChanged{kB, Health::kUnproven});
  EXPECT_TRUE(ArriveForAny(3).empty());
  EXPECT_EQ(scheduler_.node().instances.at(kB).waiting.size(), 3u);
}

TEST_F(InstanceHealthTest, WithoutAnyBetterAnInstanceServesHoweverItIs) {
  for (const InstanceId id : {kA, kB}) Tell(HealthChanged{id, Health::kDown});
  EXPECT_EQ(SentFor(ArriveForAny(1)), kA);
  EXPECT_EQ(SentFor(ArriveForAny(2)), kB);
}

TEST_F(InstanceHealthTest, ThoseThatWaitLeaveADeadInstance) {
  for (std::uint64_t request = 1; request <= 4; ++request) ArriveForAny(request);
  ASSERT_TRUE(Arrived(kA, kGpu0) && Arrived(kB, kGpu1));
  EXPECT_EQ(scheduler_.node().instances.at(kA).waiting.size(), 1u);
  Tell(HealthChanged{kA, Health::kUnproven});
  EXPECT_TRUE(scheduler_.node().instances.at(kA).waiting.empty());
  EXPECT_EQ(scheduler_.node().instances.at(kB).waiting.size(), 2u);
  // A's lease ends, and A takes nothing over.
  Tell(RequestGone{RequestId{1}, Ending::kFailed});
  EXPECT_TRUE(Tell(LeaseEnded{kA}).empty());
}

TEST_F(InstanceHealthTest, RequestsForTheInstanceItselfStay) {
  Tell(HealthChanged{kA, Health::kUnproven});
  EXPECT_EQ(SentFor(Arrive(1, kA, /*is_implicit=*/true)), kA);
}

TEST_F(InstanceHealthTest, AnInstanceThatComesBackTakesItsShare) {
  Tell(HealthChanged{kA, Health::kDown});
  for (const std::uint64_t request : {1, 2}) ArriveForAny(request);
  ASSERT_TRUE(Arrived(kB, kGpu0));
  EXPECT_EQ(SentFor(Tell(HealthChanged{kA, Health::kServing})), kA);
}

TEST_F(InstanceHealthTest, AGrantedRequestComesAgainForAnotherInstance) {
  ArriveForAny(1);
  ASSERT_TRUE(Arrived(kA, kGpu0));
  Tell(HealthChanged{kA, Health::kDown});
  const Actions again =
      Tell(RequestArrived{.request = RequestId{1}, .function = kFunction, .arrival = now_});
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(std::get<Revoke>(again[0]).instance, kA);
  EXPECT_EQ(std::get<SwapIn>(again[1]).instance, kB);
}

}  // namespace
}  // namespace torpor::scheduler
