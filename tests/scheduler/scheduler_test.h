#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "scheduler/scheduler.h"

namespace torpor::scheduler {

inline constexpr GpuIndex kGpu0{0};
inline constexpr GpuIndex kGpu1{1};
inline constexpr InstanceId kA{1};
inline constexpr InstanceId kB{2};
inline constexpr InstanceId kC{3};

// A scheduler with the default policies, and what is said to it.
class SchedulerTest : public testing::Test {
 protected:
  explicit SchedulerTest(SchedulerOptions options = {})
      : SchedulerTest({MakeFifoQueue(), MakeResidentFirstPlacement(), MakeLruEviction()}, options) {
  }
  explicit SchedulerTest(Policies policies, SchedulerOptions options = {})
      : scheduler_(std::move(policies), options) {}

  Actions Tell(const Event& event) { return scheduler_.OnEvent(event, now_); }
  void Up(GpuIndex gpu, Bytes capacity, const std::vector<GpuIndex>& sources = {}) {
    EXPECT_TRUE(Tell(ExecutorUp{gpu, capacity, sources}).empty());
  }
  void Add(InstanceId instance, Bytes image, int max_in_flight = 1) {
    Tell(InstanceAdded{instance, max_in_flight, {}});
    if (image > 0) Tell(GrowthWanted{GrowthId{next_growth_++}, instance, image});
  }
  Actions Arrive(std::uint64_t request, InstanceId instance, bool is_implicit = false) {
    return Tell(RequestArrived{RequestId{request}, instance, TimePoint::max(), is_implicit});
  }
  // Brings the instance to the GPU and back to idle there.
  void MakeResident(InstanceId instance, GpuIndex gpu) {
    const RequestId request{1000 + instance.value};
    Tell(RequestArrived{request, instance, TimePoint::max(), false});
    Tell(SwapInDone{instance, gpu, true});
    Tell(RequestGone{request});
    Tell(LeaseEnded{instance});
    ASSERT_EQ(scheduler_.node().instances.at(instance).image.copies.count(gpu), 1u);
  }
  void Advance(Duration duration) { now_ += duration; }
  // What was granted runs for so long, and is answered.
  Actions Serve(const Grant& grant, Duration run) {
    Advance(run);
    Tell(RequestGone{grant.request, Ending::kAnswered});
    return Tell(LeaseEnded{grant.instance});
  }

  template <typename T>
  static std::optional<T> Only(const Actions& actions) {
    if (actions.size() != 1 || !std::holds_alternative<T>(actions[0])) return std::nullopt;
    return std::get<T>(actions[0]);
  }

  Scheduler scheduler_;
  TimePoint now_{};
  std::uint64_t next_growth_ = 1;
};

}  // namespace torpor::scheduler
