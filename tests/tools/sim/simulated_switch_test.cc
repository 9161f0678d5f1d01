#include "tools/sim/simulated_switch.h"

#include <gtest/gtest.h>

namespace torpor::sim {
namespace {

constexpr double kGb = 1e9;

TimePoint At(double seconds) {
  return TimePoint() + Duration(static_cast<std::int64_t>(seconds * 1e9));
}

// When the next transfer ends, in seconds.
double NextEnd(const SimulatedSwitch& links) {
  return ToSeconds(links.NextEnd()->at.time_since_epoch());
}

TEST(SimulatedSwitch, AloneATransferHasItsGpusLink) {
  SimulatedSwitch links({12 * kGb, 12 * kGb}, 13 * kGb);
  EXPECT_FALSE(links.NextEnd());
  links.Begin(1, 0, 12'000'000'000, At(1));
  EXPECT_NEAR(NextEnd(links), 2, 1e-6);
}

TEST(SimulatedSwitch, TwoGpusShareTheSwitch) {
  SimulatedSwitch links({12 * kGb, 12 * kGb}, 13 * kGb);
  links.Begin(1, 0, 6'500'000'000, At(0));
  links.Begin(2, 1, 13'000'000'000, At(0));
  EXPECT_EQ(links.NextEnd()->transfer, 1u);
  EXPECT_NEAR(NextEnd(links), 1, 1e-6);
  links.Remove(1, At(1));
  EXPECT_EQ(links.NextEnd()->transfer, 2u);
  EXPECT_NEAR(NextEnd(links), 1 + 6.5 / 12, 1e-6);
}

TEST(SimulatedSwitch, ABeginSlowsWhatIsUnderWay) {
  SimulatedSwitch links({12 * kGb, 12 * kGb}, 12 * kGb);
  links.Begin(1, 0, 12'000'000'000, At(0));
  links.Begin(2, 1, 12'000'000'000, At(0.5));
  EXPECT_NEAR(NextEnd(links), 1.5, 1e-6);
}

TEST(SimulatedSwitch, TransfersOfAGpuShareItsLink) {
  SimulatedSwitch links({4 * kGb, 12 * kGb}, 13 * kGb);
  links.Begin(1, 0, 2'000'000'000, At(0));
  links.Begin(2, 0, 2'000'000'000, At(0));
  EXPECT_NEAR(NextEnd(links), 1, 1e-6);
}

TEST(SimulatedSwitch, WhatASlowLinkLeavesGoesToOthers) {
  SimulatedSwitch links({2 * kGb, 12 * kGb}, 10 * kGb);
  links.Begin(1, 0, 2'000'000'000, At(0));
  links.Begin(2, 1, 4'000'000'000, At(0));
  EXPECT_EQ(links.NextEnd()->transfer, 2u);
  EXPECT_NEAR(NextEnd(links), 0.5, 1e-6);
}

TEST(SimulatedSwitch, OfThoseThatEndTogetherTheOldestIsFirst) {
  SimulatedSwitch links({12 * kGb, 12 * kGb}, 13 * kGb);
  links.Begin(8, 1, 1'000'000, At(0));
  links.Begin(7, 0, 1'000'000, At(0));
  EXPECT_EQ(links.NextEnd()->transfer, 8u);
}

TEST(SimulatedSwitch, RemovingWhatIsNotThereChangesNothing) {
  SimulatedSwitch links({12 * kGb}, 13 * kGb);
  links.Begin(1, 0, 12'000'000'000, At(0));
  links.Remove(2, At(0.5));
  EXPECT_NEAR(NextEnd(links), 1, 1e-6);
}

}  // namespace
}  // namespace torpor::sim
