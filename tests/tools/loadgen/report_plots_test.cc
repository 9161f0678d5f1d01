#include <gtest/gtest.h>

#include <map>

#include "nlohmann/json.hpp"
#include "tests/tools/loadgen/reported_load.h"
#include "tools/loadgen/report.h"

namespace torpor::loadgen {
namespace {

using nlohmann::json;

std::map<std::string, json> Plots(const std::vector<Record>& records) {
  std::map<std::string, json> plots;
  const Report report = Summarise(SomeFunctions(), records, std::chrono::minutes(2));
  for (const PlotFile& plot : ReportPlots(report, records)) {
    plots[plot.name] = json::parse(plot.contents);
  }
  return plots;
}

TEST(ReportPlotsTest, SharesOfLatenciesAreTogetherAndByPath) {
  const json plot = Plots(SomeRecords())["latency.plot.json"];
  std::vector<std::string> names;
  for (const json& series : plot["series"]) names.push_back(series["name"]);
  EXPECT_EQ(names,
            std::vector<std::string>({"all, from the intended time", "all, from the time sent",
                                      "resident", "host", "peer", "unknown"}));
  // The warm-up's request of 500 ms is not there.
  EXPECT_EQ(plot["series"][3]["points"].back(), json({100.0, 1.0}));
}

TEST(ReportPlotsTest, MinutesArePoints) {
  auto plots = Plots(SomeRecords());
  EXPECT_EQ(plots["latency_by_minute.plot.json"]["series"][0]["points"],
            json({{0.0, 20.0}, {1.0, 100.0}}));
  EXPECT_EQ(plots["requests_by_minute.plot.json"]["series"][0]["points"],
            json({{0.0, 2.0}, {1.0, 4.0}}));
  EXPECT_EQ(plots["requests_by_minute.plot.json"]["series"][1]["points"],
            json({{0.0, 2.0}, {1.0, 2.0}}));
}

TEST(ReportPlotsTest, FunctionsStandBesideTheirObjectives) {
  const json points = Plots(SomeRecords())["objectives.plot.json"]["series"][0]["points"];
  EXPECT_EQ(points.front(), json({0.7, 0.0}));
  EXPECT_EQ(points.back(), json({1.25, 1.0}));
}

TEST(ReportPlotsTest, AFunctionThatIsOnlyRefusedIsNotTheQuickest) {
  std::vector<Record> records = SomeRecords();
  for (Record& record : records) {
    if (record.function == 0) record.outcome = Outcome::kHttpError;
  }
  const json plot = Plots(records)["objectives.plot.json"];
  EXPECT_EQ(plot["title"], "Latency at the objective's percentile, without 1 that had no answer");
  EXPECT_EQ(plot["series"][0]["points"].front()[0], plot["series"][0]["points"].back()[0]);
  EXPECT_GT(plot["series"][0]["points"].front()[0], 0.0);
}

TEST(ReportPlotsTest, NothingMeasuredIsNoPoints) {
  for (const auto& [name, plot] : Plots({})) EXPECT_TRUE(plot.contains("series")) << name;
}

}  // namespace
}  // namespace torpor::loadgen
