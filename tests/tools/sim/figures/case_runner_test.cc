#include "tools/sim/figures/case_runner.h"

#include <gtest/gtest.h>

namespace torpor::sim {
namespace {

std::vector<Case> Cases() {
  std::vector<Case> cases;
  cases.reserve(20);
  for (int i = 0; i < 20; ++i) {
    cases.push_back({{{"system", "torpor"}, {"i", i}}, [i](std::uint64_t seed) -> Json {
                       return {{"value", i * static_cast<int>(seed)}, {"list", {seed, 1}}};
                     }});
  }
  return cases;
}

TEST(MeanOf, NumbersListsAndObjects) {
  const Json mean = MeanOf({{{"a", 1}, {"b", {1, 2}}, {"c", {{"d", 3.0}}}, {"t", "text"}},
                            {{"a", 2}, {"b", {3, 2}}, {"c", {{"d", 5.0}}}, {"t", "other"}}});
  EXPECT_EQ(mean, Json({{"a", 1.5}, {"b", {2, 2}}, {"c", {{"d", 4}}}, {"t", "text"}}));
}

TEST(RunCases, ARowACaseWithTheMeansOfItsSeeds) {
  CaseRun run;
  run.seeds = 3;
  const std::vector<Json> rows = RunCases(Cases(), run);
  ASSERT_EQ(rows.size(), 20u);
  EXPECT_EQ(rows[5]["i"], 5);
  EXPECT_EQ(rows[5]["seeds"], 3);
  EXPECT_EQ(rows[5]["value"], 10.0);
  EXPECT_EQ(rows[5]["list"][0], 2.0);
}

TEST(RunCases, DoesNotDependOnTheNumberOfThreads) {
  CaseRun run;
  run.seeds = 2;
  const std::vector<Json> rows = RunCases(Cases(), run);
  run.threads = 7;
  std::size_t told = 0;
  run.progress = [&](std::size_t done, std::size_t all) {
    EXPECT_EQ(done, ++told);
    EXPECT_EQ(all, 40u);
  };
  EXPECT_EQ(RunCases(Cases(), run), rows);
  EXPECT_EQ(told, 40u);
}

TEST(RunCases, OtherSeedsThanTheFirst) {
  CaseRun run;
  run.first_seed = 4;
  EXPECT_EQ(RunCases(Cases(), run)[1]["value"], 4.0);
}

}  // namespace
}  // namespace torpor::sim
