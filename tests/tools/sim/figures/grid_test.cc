#include "tools/sim/figures/grid.h"

#include <gtest/gtest.h>

namespace torpor::sim {
namespace {

class GridTest : public testing::Test {
 protected:
  GridTest() { options_.profiles = &PaperProfiles(); }

  FigureOptions options_;
};

TEST_F(GridTest, ACaseForEachCombinationTheFirstAxisChangingSlowest) {
  const Axis pairs = {Json::object({{"rpm", 1.0}, {"functions", 7}}),
                      Json::object({{"rpm", 2.0}, {"functions", 9}})};
  const auto cases =
      CasesOf(MakeTestbed(options_, "paper-4gpu"),
              {pairs, ArrivalAxis(options_), SystemAxis(options_, {"torpor", "lru"})},
              [](const Testbed& testbed, const Json& labels, std::uint64_t seed) {
                EXPECT_EQ(testbed.node.gpus.size(), 4u);
                return Json{{"sum", labels["functions"].get<std::uint64_t>() + seed}};
              });
  ASSERT_EQ(cases.size(), 8u);
  EXPECT_EQ(cases[0].labels.dump(),
            R"({"system":"torpor","functions":7,"arrivals":"artifact","rpm":1.0})");
  EXPECT_EQ(cases[1].labels["system"], "lru");
  EXPECT_EQ(cases[2].labels["arrivals"], "poisson");
  EXPECT_EQ(cases[4].labels["rpm"], 2.0);
  EXPECT_EQ(cases[4].measure(3), Json({{"sum", 12}}));
}

TEST_F(GridTest, WhatTheOptionsSayReplacesTheFiguresOwn) {
  options_.functions = {5};
  options_.arrivals = {workload::ArrivalProcess::kPoisson};
  options_.rate_factors = {1.5, 2};
  EXPECT_EQ(FunctionAxis(options_, {1, 2, 3}), Axis{Json::object({{"functions", 5}})});
  EXPECT_EQ(ArrivalAxis(options_), Axis{Json::object({{"arrivals", "poisson"}})});
  EXPECT_EQ(RateFactorAxis(options_, {}).size(), 2u);
  EXPECT_EQ(SystemAxis(options_, {"fifo"}), Axis{Json::object({{"system", "fifo"}})});
}

}  // namespace
}  // namespace torpor::sim
