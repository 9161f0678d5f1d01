#include <gtest/gtest.h>

#include "tools/sim/figures/case_runner.h"
#include "tools/sim/figures/figure_list.h"

namespace torpor::sim {
namespace {

class FiguresTest : public testing::Test {
 protected:
  FiguresTest() {
    options_.profiles = &PaperProfiles();
    options_.rates = workload::TraceLikeRates(50, 1);
    options_.arrivals = {workload::ArrivalProcess::kArtifact};
  }

  // Whether all that is found is as in the paper.
  static void ExpectFindings(const Figure& figure) {
    const std::vector<Json> rows = RunCases(figure.cases, {});
    for (const Finding& finding : figure.findings(rows)) {
      EXPECT_TRUE(finding.holds) << finding.claim << ": " << finding.ours;
    }
  }

  FigureOptions options_;
};

TEST_F(FiguresTest, Table3ComesOutWithin15Percent) { ExpectFindings(MakeTable3(options_)); }

TEST_F(FiguresTest, ManySeldomFunctionsShareAGpu) { ExpectFindings(MakeFigure8(options_)); }

TEST_F(FiguresTest, KeepAliveAndNativeHoldFewerFunctions) {
  options_.functions = {160};
  ExpectFindings(MakeFigure10(options_));
}

TEST_F(FiguresTest, RowsSayWhatTheyAreOf) {
  options_.functions = {16};
  options_.systems = {"torpor", "fifo"};
  const std::vector<Json> rows = RunCases(MakeFigure11(options_).cases, {});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1]["system"], "fifo");
  EXPECT_EQ(rows[1]["functions"], 16);
  EXPECT_EQ(rows[1]["arrivals"], "artifact");
  EXPECT_EQ(rows[1]["ran"], 16.0);
  EXPECT_EQ(rows[1]["ratio"], 1.0);
  EXPECT_GT(rows[1]["p98_ms"], 0.0);
  EXPECT_EQ(rows[1]["models"].size(), 8u);
}

TEST_F(FiguresTest, AClusterHasItsNodesAndLetterValues) {
  options_.functions = {48};
  options_.rate_factors = {1};
  options_.rate_factors = {1};
  options_.systems = {"non-swap"};
  const std::vector<Json> rows = RunCases(MakeFigure14(options_).cases, {});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["load_variances"].size(), 6u);
  EXPECT_EQ(rows[0]["over_deadline"].size(), 13u);
  EXPECT_LE(rows[0]["over_deadline"]["1/128"], rows[0]["over_deadline"]["127/128"]);
}

}  // namespace
}  // namespace torpor::sim
