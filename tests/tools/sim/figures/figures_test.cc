#include <gtest/gtest.h>

#include "tools/sim/figures/case_runner.h"
#include "tools/sim/figures/figure_list.h"

namespace torpor::sim {
namespace {

using std::chrono::minutes;

class FiguresTest : public testing::Test {
 protected:
  FiguresTest() {
    options_.profiles = &PaperProfiles();
    options_.rates = workload::TraceLikeRates(50, 1);
    options_.arrivals = {workload::ArrivalProcess::kArtifact};
  }

  // Fails unless the rows bear on exactly `count` of the figure's claims, and all of these hold.
  static void ExpectFindings(const Figure& figure, std::size_t count) {
    const std::vector<Finding> findings = figure.findings(RunCases(figure.cases, {}));
    EXPECT_EQ(findings.size(), count);
    for (const Finding& finding : findings) {
      EXPECT_TRUE(finding.holds) << finding.claim << ": " << finding.ours;
    }
  }

  // The first minutes of a load of as many rows as the paper's.
  void Shorten(Duration length) {
    options_.rates = workload::TraceLikeRates(203, 1);
    options_.length = length;
  }

  FigureOptions options_;
};

TEST_F(FiguresTest, Table3ComesOutWithin15Percent) { ExpectFindings(MakeTable3(options_), 9); }

TEST_F(FiguresTest, ManySeldomFunctionsShareAGpu) { ExpectFindings(MakeFigure8(options_), 2); }

TEST_F(FiguresTest, KeepAliveAndNativeHoldFewerFunctions) {
  options_.functions = {160};
  ExpectFindings(MakeFigure10(options_), 3);
}

TEST_F(FiguresTest, OftenCalledFunctionsShareAllGpus) {
  options_.systems = {"torpor", "native"};
  ExpectFindings(MakeFigure9(options_), 3);
}

TEST_F(FiguresTest, WithoutLinksAndResidencyFewerFunctionsComply) {
  Shorten(minutes(5));
  options_.functions = {400, 480};
  options_.systems = {"torpor", "fifo", "lru", "random"};
  ExpectFindings(MakeFigure11(options_), 7);
}

TEST_F(FiguresTest, HeavyModelsStayUnderTorporAndNotUnderLru) {
  Shorten(minutes(5));
  options_.rates.Scale(0.85);
  options_.systems = {"torpor", "lru"};
  ExpectFindings(MakeFigure12(options_), 2);
}

TEST_F(FiguresTest, AClusterHoldsAllFunctionsAndNativeContainersFewer) {
  Shorten(minutes(2));
  options_.functions = {1000};
  options_.rate_factors = {1};
  options_.systems = {"torpor", "native"};
  ExpectFindings(MakeFigure14(options_), 3);
}

TEST_F(FiguresTest, QueuesThatKnowObjectivesAreAheadOfFifoInOverload) {
  Shorten(minutes(5));
  options_.rates.Scale(0.88);  // at these made-up rates both queues are past their knees at 1.45
  options_.rate_factors = {1.45};
  options_.systems = {"torpor", "fifo"};
  ExpectFindings(MakeFigure16(options_), 4);
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
  options_.systems = {"non-swap"};
  const std::vector<Json> rows = RunCases(MakeFigure14(options_).cases, {});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["load_variances"].size(), 6u);
  EXPECT_EQ(rows[0]["over_deadline"].size(), 13u);
  EXPECT_LE(rows[0]["over_deadline"]["1/128"], rows[0]["over_deadline"]["127/128"]);
}

}  // namespace
}  // namespace torpor::sim
