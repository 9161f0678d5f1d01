#include <gtest/gtest.h>

#include <random>

#include "tests/scheduler/scheduler_world.h"

namespace torpor::scheduler {
namespace {

class SchedulerProperty : public testing::TestWithParam<std::uint32_t> {};

// No double grant, no GPU beyond its capacity, nobody left behind; see SchedulerWorld.
TEST_P(SchedulerProperty, KeepsItsPromises) {
  std::mt19937 random(GetParam());
  const int gpus = 1 + static_cast<int>(GetParam() % 3);
  SchedulerWorld world(gpus, 40, 6, [&] { return static_cast<std::uint32_t>(random()); });
  for (int step = 0; step < 3000; ++step) {
    ASSERT_EQ(world.Step(), "") << "step " << step;
  }
  ASSERT_EQ(world.Finish(), "");
  EXPECT_GT(world.grants(), 100u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SchedulerProperty, testing::Range(0u, 40u));

}  // namespace
}  // namespace torpor::scheduler
