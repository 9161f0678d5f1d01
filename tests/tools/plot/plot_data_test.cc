#include "tools/plot/plot_data.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace torpor::plot {
namespace {

TEST(QuantileTest, IsTheNearestRank) {
  EXPECT_EQ(Quantile({3, 1, 2, 4}, 0.5), 2);
  EXPECT_EQ(Quantile({3, 1, 2, 4}, 0.51), 3);
  EXPECT_EQ(Quantile({3, 1, 2, 4}, 0), 1);
  EXPECT_EQ(Quantile({3, 1, 2, 4}, 1), 4);
  EXPECT_EQ(Quantile({}, 0.5), 0);
}

TEST(PlotJsonTest, ACdfHasThePointsOfItsSamples) {
  const auto json = nlohmann::json::parse(
      PlotJson(CdfPlot{"title", "ms", true, {{"one", {30, 10, 20}}, {"none", {}}}}));
  EXPECT_EQ(json["kind"], "cdf");
  EXPECT_EQ(json["log_x"], true);
  const auto& points = json["series"][0]["points"];
  EXPECT_EQ(points.front(), nlohmann::json({10.0, 0.0}));
  EXPECT_EQ(points.back(), nlohmann::json({30.0, 1.0}));
}

TEST(PlotJsonTest, BarsAreWrittenAsTheyAre) {
  EXPECT_EQ(PlotJson(BarPlot{"title", "ms", false, {"a", "b"}, {{"x", {1, 2.5}}}}),
            R"({"groups":["a","b"],"kind":"bars","log_y":false,"series":[)"
            R"({"name":"x","values":[1.0,2.5]}],"title":"title","y_label":"ms"})"
            "\n");
}

TEST(PlotJsonTest, LinesAreWrittenAsTheyAre) {
  EXPECT_EQ(
      PlotJson(LinePlot{"title", "minute", "ms", false, {{"x", {{0, 1}, {1, 2.5}}}}}),
      R"({"kind":"lines","log_y":false,"series":[{"name":"x","points":[[0.0,1.0],[1.0,2.5]]}],)"
      R"("title":"title","x_label":"minute","y_label":"ms"})"
      "\n");
}

TEST(PlotJsonTest, ALineMayHaveAPanel) {
  LinePlot plot{"title", "minute", "ms", false, {{"x", {}, "low"}, {"x", {}}}};
  const auto json = nlohmann::json::parse(PlotJson(plot));
  EXPECT_EQ(json["series"][0]["panel"], "low");
  EXPECT_FALSE(json["series"][1].contains("panel"));
}

}  // namespace
}  // namespace torpor::plot
