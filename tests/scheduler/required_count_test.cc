#include "scheduler/required_count.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace torpor::scheduler {
namespace {

FunctionState Function(int in_time, int late) {
  FunctionState function;
  function.objective.percentile = 0.9;
  for (int i = 0; i < in_time; ++i) function.recent.Add(true, TimePoint());
  for (int i = 0; i < late; ++i) function.recent.Add(false, TimePoint());
  return function;
}

// Requests in time, one after the other, until the share in time reaches the percentile.
int CountedByHand(int in_time, int late, double percentile) {
  int count = 0;
  while (in_time + count < percentile * (in_time + late + count) - 1e-9) ++count;
  return count;
}

TEST(RequiredCount, ThatManyInTimeMakeTheFunctionComply) {
  for (int in_time = 0; in_time <= 30; ++in_time) {
    for (int late = 1; late <= 3; ++late) {
      const double required = RequiredCount(Function(in_time, late));
      EXPECT_EQ(std::max(0, static_cast<int>(std::ceil(required - 1e-9))),
                CountedByHand(in_time, late, 0.9))
          << in_time << " in time, " << late << " late";
    }
  }
}

TEST(RequiredCount, IsZeroBeforeTheFirstRequestAndNegativeWithRoomForLateOnes) {
  EXPECT_EQ(RequiredCount(Function(0, 0)), 0);
  EXPECT_NEAR(RequiredCount(Function(10, 0)), -10, 1e-9);
}

}  // namespace
}  // namespace torpor::scheduler
