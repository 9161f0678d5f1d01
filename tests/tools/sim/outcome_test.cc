#include "tools/sim/outcome.h"

#include <gtest/gtest.h>

namespace torpor::sim {
namespace {

TEST(FunctionOutcome, CompliesWithThatShareInTime) {
  FunctionOutcome function;
  function.arrived = 100;
  function.in_time = 98;
  EXPECT_TRUE(function.Complies(0.98));
  function.in_time = 97;
  EXPECT_FALSE(function.Complies(0.98));
}

TEST(FunctionOutcome, RefusedRequestsAreNotInTime) {
  FunctionOutcome function;
  function.arrived = 10;
  function.in_time = 9;
  function.refused = 1;
  EXPECT_FALSE(function.Complies(0.98));
}

TEST(FunctionOutcome, RunsWithARequestServed) {
  FunctionOutcome function;
  function.arrived = 1;
  function.refused = 1;
  EXPECT_FALSE(function.ran());
  function.late = 1;
  EXPECT_TRUE(function.ran());
}

TEST(Percentile, IsTheNearestRank) {
  std::vector<std::uint32_t> values;
  for (std::uint32_t i = 100; i >= 1; --i) values.push_back(i);
  EXPECT_EQ(Percentile(values, 0.98), 98u);
  EXPECT_EQ(Percentile(values, 0.5), 50u);
  EXPECT_EQ(Percentile(values, 0.001), 1u);
  EXPECT_EQ(Percentile(values, 1), 100u);
}

TEST(Percentile, OfNoneIsZero) {
  std::vector<std::uint32_t> none;
  EXPECT_EQ(Percentile(none, 0.98), 0u);
}

TEST(Percentile, AgreesWithCompliance) {
  std::vector<std::uint32_t> values(50, 10);
  values[0] = 99;
  EXPECT_EQ(Percentile(values, 0.98), 10u);  // 49 of 50 are in time
  values[1] = 99;
  EXPECT_EQ(Percentile(values, 0.98), 99u);
}

}  // namespace
}  // namespace torpor::sim
