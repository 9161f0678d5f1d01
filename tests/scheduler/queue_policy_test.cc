#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>

#include "tests/scheduler/waiting_node.h"

namespace torpor::scheduler {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

constexpr TimePoint At(Duration since) { return TimePoint(since); }

TEST(FifoQueueTest, ServesInOrderOfArrival) {
  WaitingNode node(MakeFifoQueue());
  for (const std::uint64_t id : {1, 2, 3}) node.AddFunction(id);
  node.Wait(2, At(seconds(1)));
  node.Wait(3, At(seconds(2)));
  // Request 1 was granted before and lost the GPU: the turn stays.
  node.Wait(1, At(seconds(0)));
  EXPECT_THAT(node.First(5), ElementsAre(1, 2, 3));
  EXPECT_THAT(node.First(2), ElementsAre(1, 2));
  node.Leave(2);
  EXPECT_THAT(node.First(5), ElementsAre(1, 3));
}

TEST(FifoQueueTest, LeavesOutThoseOfClosedGpus) {
  WaitingNode node(MakeFifoQueue());
  for (const std::uint64_t id : {1, 2, 3}) node.AddFunction(id);
  node.instance(1).bound_gpu = GpuIndex{0};
  node.instance(2).bound_gpu = GpuIndex{1};
  for (const std::uint64_t id : {1, 2, 3}) node.Wait(id, At(seconds(id)));
  EXPECT_THAT(node.First(5), ElementsAre(1, 2, 3));
  EXPECT_EQ(node.queue().First(5, {GpuIndex{1}}, node.node(), {}),
            (std::vector{InstanceId{2}, InstanceId{3}}));
}

TEST(DeadlineQueueTest, ServesTheEarliestDeadlineFirst) {
  WaitingNode node(MakeDeadlineQueue());
  for (const std::uint64_t id : {1, 2, 3}) node.AddFunction(id);
  node.Wait(1, At(seconds(1)), At(seconds(9)));
  node.Wait(2, At(seconds(2)), At(seconds(3)));
  node.Wait(3, At(seconds(3)), At(seconds(9)));
  EXPECT_THAT(node.First(5), ElementsAre(2, 1, 3));
  node.Leave(2);
  EXPECT_THAT(node.First(5), ElementsAre(1, 3));
}

TEST(LatestStartQueueTest, ServesWhoMustStartFirst) {
  WaitingNode node(MakeLatestStartQueue({.rescue_limit = 30}));
  for (const std::uint64_t id : {1, 2, 3}) node.AddFunction(id, {milliseconds(80), 0.98});
  node.function(1).run_times.of(ImageSource::kResident).Add(milliseconds(10));
  node.function(1).run_times.of(ImageSource::kHost).Add(milliseconds(90));
  node.function(2).run_times.of(ImageSource::kHost).Add(milliseconds(20));
  node.Wait(1, At(milliseconds(0)), At(milliseconds(150)));
  node.Wait(2, At(milliseconds(1)), At(milliseconds(90)));
  node.Wait(3, At(milliseconds(2)), At(milliseconds(65)));
  EXPECT_THAT(node.First(5), ElementsAre(1, 3, 2));
  node.Leave(1);
  node.instance(1).image.copies[GpuIndex{0}].state = Copy::State::kPresent;
  node.Wait(1, At(milliseconds(0)), At(milliseconds(150)));
  EXPECT_THAT(node.First(5), ElementsAre(3, 2, 1));
}

TEST(LatestStartQueueTest, ServesLastWhoIsBeyondRescue) {
  WaitingNode node(MakeLatestStartQueue({.rescue_limit = 30}));
  for (const std::uint64_t id : {1, 2}) node.AddFunction(id, {milliseconds(80), 0.98});
  node.Finish(1, false, At(seconds(1)));  // needs 49 in a row now
  node.Wait(1, At(seconds(2)), At(seconds(3)));
  node.Wait(2, At(seconds(2)), At(seconds(4)));
  EXPECT_THAT(node.First(5), ElementsAre(2, 1));
  node.Leave(1);
  for (int i = 0; i < 20; ++i) node.Finish(1, true, At(seconds(2)));
  node.Wait(1, At(seconds(2)), At(seconds(3)));
  EXPECT_THAT(node.First(5), ElementsAre(1, 2));
}

// Functions 1 to 4: odd numbers belong to one tenant, even numbers to another.
void AddFunctionsOfTwoTenants(WaitingNode& node) {
  for (std::uint64_t id = 1; id <= 4; ++id) {
    node.AddFunction(id);
    node.function(id).tenant = TenantId{id % 2 + 1};
  }
}

TEST(SharedQueueTest, ServesHigherPrioritiesFirst) {
  WaitingNode node(MakeSharedQueue(MakeFifoQueue));
  for (const std::uint64_t id : {1, 2, 3, 4}) node.AddFunction(id);
  node.function(3).priority = 5;
  node.function(4).priority = -1;
  for (const std::uint64_t id : {4, 1, 3, 2}) node.Wait(id, At(seconds(5 - id)));
  EXPECT_THAT(node.First(9), ElementsAre(3, 2, 1, 4));
  EXPECT_THAT(node.First(2), ElementsAre(3, 2));
  EXPECT_TRUE(node.queue().IsBefore(node.instance(3), node.instance(2), node.node(), {}));
  node.Change(4, [](FunctionState& function) { function.priority = 9; });
  EXPECT_THAT(node.First(9), ElementsAre(4, 3, 2, 1));
}

TEST(SharedQueueTest, WhoChangesItsPriorityOrTenantLeavesNothingBehind) {
  WaitingNode node(MakeSharedQueue(RrcQueues({.alpha = 0.5})));
  for (const std::uint64_t id : {1, 2}) node.AddFunction(id, {milliseconds(80), 0.98});
  node.Finish(1, false, At(seconds(1)));
  for (int i = 0; i < 2; ++i) node.Finish(2, false, At(seconds(1)));
  const auto is_high = [&](std::uint64_t id) {
    return node.queue().StandingOf(node.function(id))->is_high;
  };
  EXPECT_TRUE(is_high(1));  // a third of what all require
  EXPECT_FALSE(is_high(2));
  node.Change(2, [](FunctionState& function) { function.priority = 1; });
  EXPECT_FALSE(is_high(1));  // all of it
  node.Change(2, [](FunctionState& function) { function.priority = 0; });
  EXPECT_TRUE(is_high(1));
  node.Change(2, [](FunctionState& function) { function.tenant = TenantId{7}; });
  EXPECT_FALSE(is_high(1));
}

TEST(SharedQueueTest, IsEmptyOnceAllHaveLeft) {
  WaitingNode node(MakeSharedQueue(RrcQueues()));
  node.AddFunction(1);
  node.Wait(1, At(seconds(1)));
  node.Change(1, [](FunctionState& function) { function.priority = 1; });
  node.Leave(1);
  EXPECT_FALSE(node.queue().is_empty());
  node.queue().Forget(node.function(1));
  EXPECT_TRUE(node.queue().is_empty());
}

TEST(SharedQueueTest, WhoChangesItsTenantWhileItRunsLeavesNothingBehindAfterwards) {
  WaitingNode node(MakeSharedQueue(RrcQueues()));
  node.AddFunction(1);
  node.Wait(1, At(seconds(1)));
  node.Serve(1, At(seconds(1)));
  node.Change(1, [](FunctionState& function) { function.tenant = TenantId{7}; });
  node.Release(1, At(seconds(2)));
  node.queue().Forget(node.function(1));
  EXPECT_TRUE(node.queue().is_empty());
}

TEST(SharedQueueTest, TenantsShareByTheirWeights) {
  WaitingNode node(MakeSharedQueue(MakeFifoQueue));
  node.node().tenants[TenantId{1}].weight = 3;
  node.node().tenants[TenantId{2}].weight = 1;
  for (std::uint64_t id = 1; id <= 8; ++id) {
    node.AddFunction(id);
    node.function(id).tenant = TenantId{id <= 4 ? 1u : 2u};
    node.Wait(id, At(seconds(9 - id)));
  }
  EXPECT_THAT(node.First(4), ElementsAre(4, 8, 3, 2));
  // The first uses a third of a second by its weight, then the second a whole one.
  node.Serve(4, At(seconds(10)));
  node.Release(4, At(seconds(11)));
  EXPECT_THAT(node.First(4), ElementsAre(8, 7, 6, 5));
  EXPECT_TRUE(
      node.queue().IsBefore(node.instance(5), node.instance(3), node.node(), At(seconds(11))));
  node.Serve(8, At(seconds(11)));
  node.Release(8, At(seconds(12)));
  EXPECT_THAT(node.First(4), ElementsAre(3, 2, 1, 7));
}

TEST(SharedQueueTest, WhatNobodyWaitedForIsNotCaughtUpWith) {
  WaitingNode node(MakeSharedQueue(MakeFifoQueue));
  AddFunctionsOfTwoTenants(node);
  node.Wait(1, At(seconds(1)));
  node.Serve(1, At(seconds(1)));
  // Request 1 has held the GPU for long when others come.
  for (const std::uint64_t id : {2, 3, 4}) node.Wait(id, At(seconds(100 + id)));
  node.Release(1, At(seconds(105)));
  EXPECT_THAT(node.First(1, At(seconds(105))), ElementsAre(2));
  node.Serve(2, At(seconds(105)));
  node.Release(2, At(seconds(110)));
  EXPECT_THAT(node.First(2, At(seconds(110))), ElementsAre(3, 4));
}

TEST(SharedQueueTest, WhatJoinsALeaseCountsAsUse) {
  WaitingNode node(MakeSharedQueue(MakeFifoQueue));
  AddFunctionsOfTwoTenants(node);
  for (const std::uint64_t id : {1, 3}) node.Wait(id, At(seconds(id)));
  node.Serve(1, At(seconds(3)));
  node.queue().OnJoined(node.instance(1), node.node(), At(seconds(100)));
  for (const std::uint64_t id : {2, 4}) node.Wait(id, At(seconds(100)));
  node.Release(1, At(seconds(100)));
  EXPECT_THAT(node.First(1, At(seconds(100))), ElementsAre(2));
  node.Serve(2, At(seconds(100)));
  node.Release(2, At(seconds(105)));
  EXPECT_THAT(node.First(2, At(seconds(105))), ElementsAre(3, 4));
}

TEST(SharedQueueTest, WhatIsUnderWayCountsAsUse) {
  WaitingNode node(MakeSharedQueue(MakeFifoQueue));
  for (std::uint64_t id = 1; id <= 4; ++id) {
    node.AddFunction(id);
    node.function(id).tenant = TenantId{id <= 2 ? 1u : 2u};
    node.Wait(id, At(seconds(id)));
  }
  EXPECT_THAT(node.First(1), ElementsAre(1));
  node.Serve(1, At(seconds(5)));
  // Requests on two GPUs at one moment belong to two tenants.
  EXPECT_THAT(node.First(1, At(seconds(5))), ElementsAre(3));
  node.Serve(3, At(seconds(5)));
  node.Release(3, At(seconds(6)));
  EXPECT_THAT(node.First(1, At(seconds(7))), ElementsAre(4));
  node.Release(1, At(seconds(7)));
  EXPECT_THAT(node.First(1, At(seconds(7))), ElementsAre(4));
  node.Serve(4, At(seconds(7)));
  EXPECT_THAT(node.First(1, At(seconds(7))), ElementsAre(2));
}

// What appendix A.3 says, computed from nothing.
std::vector<std::uint64_t> OrderOfAppendix(WaitingNode& node, std::uint64_t functions,
                                           double alpha) {
  struct Entry {
    std::int64_t count;
    std::uint64_t id;
  };
  std::vector<Entry> sorted;
  for (std::uint64_t id = 1; id <= functions; ++id) {
    const FunctionState& function = node.function(id);
    const double p = function.objective.percentile;
    const double count = (p * static_cast<double>(function.recent.finished()) -
                          static_cast<double>(function.recent.in_time())) /
                         (1 - p);
    sorted.push_back({std::llround(count * 1e6), id});
  }
  std::sort(sorted.begin(), sorted.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.count, a.id) < std::tie(b.count, b.id);
  });
  std::int64_t total = 0;
  for (const Entry& entry : sorted) total += std::max<std::int64_t>(entry.count, 0);
  std::vector<std::tuple<bool, std::int64_t, Turn, std::uint64_t>> waiting;
  std::int64_t sum = 0;
  bool is_high = true;
  for (const Entry& entry : sorted) {
    sum += std::max<std::int64_t>(entry.count, 0);
    is_high = is_high && sum <= static_cast<std::int64_t>(alpha * static_cast<double>(total));
    if (!node.IsWaiting(entry.id)) continue;
    waiting.emplace_back(!is_high, is_high ? -entry.count : entry.count,
                         *node.instance(entry.id).queued_as, entry.id);
  }
  std::sort(waiting.begin(), waiting.end());
  std::vector<std::uint64_t> order;
  order.reserve(waiting.size());
  for (const auto& entry : waiting) order.push_back(std::get<3>(entry));
  return order;
}

class RrcQueueTest : public testing::TestWithParam<double> {};

TEST_P(RrcQueueTest, OrdersAsTheAppendixSays) {
  const double alpha = GetParam();
  constexpr std::uint64_t kFunctions = 40;
  // One period: alpha stays.
  WaitingNode node(RrcQueues({.alpha = alpha, .period = std::chrono::hours(1000)})());
  std::mt19937 random(7);
  for (std::uint64_t id = 1; id <= kFunctions; ++id) {
    node.AddFunction(id, {milliseconds(80), id % 3 == 0 ? 0.9 : 0.98});
  }
  TimePoint now;
  for (int step = 0; step < 3000; ++step) {
    now += milliseconds(1);
    const std::uint64_t id = 1 + random() % kFunctions;
    // Some do much worse than others.
    if (random() % 2 == 0) {
      node.Finish(id, random() % kFunctions >= id / 2, now);
    } else if (node.IsWaiting(id)) {
      node.Leave(id);
    } else {
      node.Wait(id, now);
    }
    if (step % 10 == 0) {
      ASSERT_EQ(node.First(kFunctions), OrderOfAppendix(node, kFunctions, alpha)) << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Alphas, RrcQueueTest, testing::Values(0, 0.1, 0.5, 1));

TEST(AdaptiveAlphaTest, FollowsTheRatioOfCompliantFunctions) {
  WaitingNode node(RrcQueues({.alpha = 0.5, .period = seconds(40)})());
  for (std::uint64_t id = 1; id <= 10; ++id) node.AddFunction(id, {milliseconds(80), 0.5});
  TimePoint now = At(seconds(1));
  const auto period = [&](std::uint64_t compliant) {
    for (std::uint64_t id = 1; id <= 10; ++id) node.Finish(id, id <= compliant, now);
    now += seconds(40);
  };
  const auto alpha = [&] { return node.queue().StandingOf(node.function(1))->alpha; };
  period(8);
  period(8);
  EXPECT_EQ(alpha(), 0.5);
  period(4);
  period(4);  // the outcomes of the one before are known now: fewer than before it
  EXPECT_EQ(alpha(), 0.25);
  period(5);
  EXPECT_EQ(alpha(), 0.25);
  period(9);
  period(10);
  EXPECT_EQ(alpha(), 1.0);  // twice up: 5, 9 of 10
}

TEST(AdaptiveAlphaTest, IsOneForAllPrioritiesAndTenants) {
  WaitingNode node(MakeSharedQueue(RrcQueues({.alpha = 0.5, .period = seconds(40)})));
  for (const std::uint64_t id : {1, 2, 3}) node.AddFunction(id, {milliseconds(80), 0.98});
  node.Change(3, [](FunctionState& function) { function.priority = 1; });
  node.Finish(1, false, At(seconds(1)));
  node.Finish(2, false, At(seconds(1)));
  node.Finish(2, false, At(seconds(1)));
  node.Wait(1, At(seconds(2)));
  node.Wait(2, At(seconds(3)));
  EXPECT_THAT(node.First(2), ElementsAre(1, 2));
  // In the first period a third of the functions comply, in the second all that finish any.
  node.Finish(3, true, At(seconds(2)));
  node.Finish(3, true, At(seconds(42)));
  node.Finish(3, true, At(seconds(82)));
  EXPECT_EQ(node.queue().StandingOf(node.function(3))->alpha, 1.0);
  EXPECT_EQ(node.queue().StandingOf(node.function(1))->alpha, 1.0);
  // All are in the high group, of which goes first who needs most.
  EXPECT_THAT(node.First(2), ElementsAre(2, 1));
}

}  // namespace
}  // namespace torpor::scheduler
