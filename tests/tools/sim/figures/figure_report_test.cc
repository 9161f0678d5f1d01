#include "tools/sim/figures/figure_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torpor::sim {
namespace {

using testing::HasSubstr;

Figure MakeFigure() {
  Figure figure;
  figure.name = "figure 11";
  figure.number = 11;
  figure.title = "A title";
  figure.setting = "A setting.";
  figure.columns = {{"ratio", "ratio", 2}, {"deep", "models/a~1b/p98_ms", 1}, {"list", "list", 1}};
  figure.cases = {{{{"system", "torpor"}, {"functions", 480}}, nullptr}};
  figure.paper = {{{{"system", "lru"}}, ".50"}, {{{"system", "torpor"}}, "1.00"}};
  figure.findings = [](const std::vector<Json>& rows) {
    return std::vector<Finding>{{"all comply", rows[0]["ratio"] == 1, "0.50"}};
  };
  return figure;
}

std::vector<Json> Rows() {
  return {{{"system", "torpor"},
           {"functions", 480},
           {"ratio", 0.5},
           {"models", {{"a/b", {{"p98_ms", 12.34}}}}},
           {"list", {1.0, 2.25}}}};
}

TEST(FigureText, OurNumbersBesideThePapers) {
  const std::string text = FigureText(MakeFigure(), Rows());
  EXPECT_THAT(text, HasSubstr("figure 11: A title\nA setting.\n"));
  EXPECT_THAT(text, HasSubstr("torpor        480   0.50  12.3  1.0 2.2  1.00"));
  EXPECT_THAT(text, HasSubstr("NOT AS IN THE PAPER: all comply - 0.50"));
}

TEST(FigureCsv, NamesOfColumnsAndALineARow) {
  EXPECT_EQ(FigureCsv({{{"system", "torpor"}, {"models", {{"a/b", 1.5}}}},
                       {{"system", "lru"}, {"list", {1, 2}}}}),
            "system,models/a/b,list/0,list/1\ntorpor,1.5,,\nlru,,1,2\n");
}

TEST(FigureJson, IsOneObject) {
  const Json json = Json::parse(FigureJson(MakeFigure(), Rows()));
  EXPECT_EQ(json["figure"], 11);
  ASSERT_EQ(json["rows"].size(), 1u);
  EXPECT_EQ(json["rows"][0]["system"], "torpor");
  EXPECT_EQ(json["findings"][0]["holds"], false);
}

}  // namespace
}  // namespace torpor::sim
