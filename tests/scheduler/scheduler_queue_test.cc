#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tests/scheduler/scheduler_test.h"

// Who is asked when a GPU is free.
namespace torpor::scheduler {
namespace {

constexpr auto kMost = static_cast<std::uint64_t>(Scheduler::kMostPassedOver);

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
  Scheduler scheduler({MakeFifoQueue(),
                       std::make_unique<Choosy>(InstanceId{kMost + 10}, asked), MakeLruEviction()});
  const auto tell = [&](const Event& event) { return scheduler.OnEvent(event, TimePoint()); };
  tell(ExecutorUp{kGpu0, 100});
  for (std::uint64_t id = 1; id <= 10 * kMost; ++id) {
    tell(InstanceAdded{InstanceId{id}});
    asked = 0;
    tell(RequestArrived{RequestId{id}, InstanceId{id}});
    EXPECT_EQ(asked, std::min(id, kMost));
  }
  // The others come when those have gone.
  for (std::uint64_t id = 1; id < 10; ++id) {
    EXPECT_EQ(scheduler.node().gpus.at(kGpu0).tenant, InstanceId{});
    tell(RequestGone{RequestId{id}});
  }
  tell(RequestGone{RequestId{10}});
  EXPECT_EQ(scheduler.node().gpus.at(kGpu0).tenant, InstanceId{kMost + 10});
}

class GpusOfTwoSizesTest : public SchedulerTest {};

TEST_F(GpusOfTwoSizesTest, WhoIsTooLargeForTheFreeOneKeepsNobodyFromIt) {
  Up(kGpu0, 100);
  Up(kGpu1, 20);
  for (std::uint64_t id = 1; id <= 2 * kMost; ++id) {
    Add(InstanceId{id}, 50);
    Arrive(id, InstanceId{id});
  }
  const InstanceId small{1'000};
  Add(small, 10);
  const auto swap_in = Only<SwapIn>(Arrive(1'000, small));
  ASSERT_TRUE(swap_in);
  EXPECT_EQ(swap_in->gpu, kGpu1);
}

}  // namespace
}  // namespace torpor::scheduler
