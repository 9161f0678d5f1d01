#include "emulator/driver/stream/call_costs.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace torpor::emulator {
namespace {

using std::chrono::microseconds;

Topology Costly() {
  Topology topology;
  topology.strict.costs = true;
  topology.time_scale = 2;
  return topology;
}

Duration TimeOf(const auto& run) {
  const TimePoint begun = SteadyClock().Now();
  run();
  return SteadyClock().Now() - begun;
}

TEST(CallCostsTest, ShortCallsAddUpToTheirModelledTime) {
  CallCosts costs(Costly());
  const Duration passed = TimeOf([&] {
    for (int i = 0; i < 200; ++i) CostedCall call(costs, 10);
  });
  // Less than a step may be owed at the end.
  EXPECT_GE(passed, microseconds(200 * 10 * 2 - 100));
}

TEST(CallCostsTest, CallsOfSeveralThreadsWaitForEachOther) {
  constexpr int kThreads = 4;
  CallCosts costs(Costly());
  const Duration passed = TimeOf([&] {
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] { CostedCall call(costs, 1000); });
    }
    for (std::thread& thread : threads) thread.join();
  });
  // Starting a thread counts for nobody; the calls themselves take next to no time.
  EXPECT_GE(passed, microseconds(kThreads * 1000 * 2 - kThreads * 100));
}

TEST(CallCostsTest, WithoutStrictnessCallsCostNothing) {
  CallCosts costs{Topology()};
  EXPECT_FALSE(costs.enabled());
  CostedCall call(costs, 1e12);
}

}  // namespace
}  // namespace torpor::emulator
