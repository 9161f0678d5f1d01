#include "tools/sim/figures/figure_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torpor::sim {
namespace {

using testing::HasSubstr;

Json Labels(const char* system, int functions, int deadline_ms) {
  return {{"system", system},
          {"functions", functions},
          {"arrivals", "poisson"},
          {"deadline_ms", deadline_ms}};
}

Figure MakeFigure() {
  Figure figure;
  figure.name = "figure 11";
  figure.title = "A title";
  figure.cases = {{Labels("torpor", 480, 60), nullptr},
                  {Labels("torpor", 400, 60), nullptr},
                  {Labels("fifo", 400, 70), nullptr}};
  figure.plot = FigurePlot{"functions", "functions", "ratio", "ratio", false};
  return figure;
}

std::vector<Json> Rows() {
  return {{{"functions", 480}, {"ratio", 0.5}, {"gpus", {1, 2}}},
          {{"functions", 400}, {"ratio", 1.0}, {"gpus", {3, 4}}},
          {{"functions", 400}, {"ratio", 0.2}, {"gpus", {5, 6}}}};
}

TEST(FigurePlot, ALineASystemInAPanelForWhatElseDiffers) {
  const Json plot = Json::parse(FigurePlotJson(MakeFigure(), Rows()));
  EXPECT_EQ(plot["kind"], "lines");
  ASSERT_EQ(plot["series"].size(), 2u);
  EXPECT_EQ(plot["series"][0]["name"], "torpor");
  EXPECT_EQ(plot["series"][0]["panel"], "60 ms");
  EXPECT_EQ(plot["series"][0]["points"], Json::parse("[[400,1.0],[480,0.5]]"));
  EXPECT_EQ(plot["series"][1]["name"], "fifo");
  EXPECT_EQ(plot["series"][1]["panel"], "70 ms");
}

TEST(FigurePlot, WhatFollowsFromXIsNoPanel) {
  Figure figure = MakeFigure();
  figure.plot->x_key = "deadline_ms";
  figure.cases = {{Labels("torpor", 480, 60), nullptr},
                  {Labels("torpor", 400, 70), nullptr},
                  {Labels("fifo", 480, 60), nullptr}};
  const Json plot = Json::parse(FigurePlotJson(figure, Rows()));
  ASSERT_EQ(plot["series"].size(), 2u);
  EXPECT_FALSE(plot["series"][0].contains("panel"));
}

TEST(FigurePlot, BarsOfWhatIsWithinARow) {
  Figure figure = MakeFigure();
  figure.plot->x_key = "";
  figure.plot->bars = {{"GPU 0", "gpus/0"}, {"GPU 1", "gpus/1"}};
  const Json plot = Json::parse(FigurePlotJson(figure, Rows()));
  EXPECT_EQ(plot["kind"], "bars");
  EXPECT_EQ(plot["groups"], Json::parse(R"(["GPU 0","GPU 1"])"));
  EXPECT_EQ(plot["series"][2]["name"], "fifo, 400, 70 ms");
  EXPECT_EQ(plot["series"][2]["values"], Json::parse("[5.0,6.0]"));
}

TEST(FigurePlot, WhatCannotBeDrawnIsSaid) {
  Figure figure = MakeFigure();
  EXPECT_THAT(std::string(DrawFigure(figure, Rows(), "f.png").message()), HasSubstr("end in .svg"));
  EXPECT_THAT(std::string(DrawFigure(figure, Rows(), "/nowhere/f.svg").message()),
              HasSubstr("cannot write /nowhere/f.plot.json"));
  figure.plot.reset();
  EXPECT_THAT(std::string(DrawFigure(figure, Rows(), "f.svg").message()), HasSubstr("has no plot"));
}

}  // namespace
}  // namespace torpor::sim
