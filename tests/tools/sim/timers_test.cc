#include "tools/sim/timers.h"

#include <gtest/gtest.h>

namespace torpor::sim {
namespace {

Timer At(int ns, std::uint64_t key) {
  return {TimePoint(Duration(ns)), Timer::Kind::kWakeUp, 0, 0, key};
}

TEST(Timers, TheEarliestFirstAndThenInTheOrderOfSetting) {
  Timers timers;
  EXPECT_FALSE(timers.next());
  timers.Set(At(20, 1));
  timers.Set(At(10, 2));
  timers.Set(At(10, 3));
  EXPECT_EQ(timers.next(), TimePoint(Duration(10)));
  EXPECT_EQ(timers.Take().key, 2u);
  EXPECT_EQ(timers.Take().key, 3u);
  EXPECT_EQ(timers.Take().key, 1u);
  EXPECT_FALSE(timers.next());
}

}  // namespace
}  // namespace torpor::sim
