#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "tests/tools/loadgen/reported_load.h"
#include "tools/loadgen/report.h"

namespace torpor::loadgen {
namespace {

TEST(ReportJsonTest, HoldsTheTotalsAtItsTop) {
  const auto json = nlohmann::json::parse(ReportJson(SomeReport()));
  for (const char* name : {"requests", "errors", "wrong_answers", "swaps_pcie", "swaps_nvlink"}) {
    EXPECT_TRUE(json.at(name).is_number_integer()) << name;
  }
  EXPECT_EQ(json["requests"], 6);
  EXPECT_EQ(json["errors"], 1);
  EXPECT_EQ(json["swaps_pcie"], 2);
  EXPECT_EQ(json["latency_ms"]["p50"], 64);
  EXPECT_EQ(json["valid"], true);
  EXPECT_EQ(json["compliant_functions"], 1);
  EXPECT_EQ(json["late_requests"], 1);
  EXPECT_EQ(json["warm_up"]["requests"], 1);
  EXPECT_EQ(json["gpus"][1]["gpu"], 1);
}

TEST(ReportJsonTest, HoldsFunctionsPathsAndMinutes) {
  const auto json = nlohmann::json::parse(ReportJson(SomeReport()));
  ASSERT_EQ(json["functions"].size(), 2U);
  const auto& resnet = json["functions"][0];
  EXPECT_EQ(resnet["name"], "resnet");
  EXPECT_EQ(resnet["objective_ms"], 80);
  EXPECT_EQ(resnet["percentile"], 98);
  EXPECT_EQ(resnet["compliant"], false);
  EXPECT_EQ(resnet["latency_at_percentile_ms"], 100);
  EXPECT_EQ(resnet["attainment"], 0.75);
  EXPECT_EQ(resnet["latency_ms"]["max"], 100);
  EXPECT_EQ(resnet["latency_from_sent_ms"]["max"], 84);
  EXPECT_EQ(resnet["paths"].size(), 3U);
  EXPECT_EQ(resnet["paths"]["host"]["swap_ms"], 42);
  EXPECT_EQ(resnet["paths"]["peer"]["latency_ms"]["p98"], 26);
  EXPECT_EQ(json["paths"]["resident"]["requests"], 2);
  EXPECT_EQ(json["paths"]["unknown"]["requests"], 1);
  ASSERT_EQ(json["minutes"].size(), 2U);
  EXPECT_EQ(json["minutes"][0]["requests"], 2);
  EXPECT_EQ(json["minutes"][1]["lag_ms"]["max"], 16);
}

TEST(ReportJsonTest, SaysWhyItsFiguresDoNotCount) {
  Report report = SomeReport();
  report.invalid_because = "of this";
  const auto json = nlohmann::json::parse(ReportJson(report));
  EXPECT_EQ(json["valid"], false);
  EXPECT_EQ(json["invalid_because"], "of this");
}

constexpr const char* kCsv =
    R"csv(function,path,objective_ms,percentile,requests,errors,timeouts,wrong_answers,attainment,p50_ms,p90_ms,p95_ms,p98_ms,p99_ms,p999_ms,max_ms,mean_ms,sent_p50_ms,sent_p90_ms,sent_p95_ms,sent_p98_ms,sent_p99_ms,sent_p999_ms,sent_max_ms,sent_mean_ms,queue_ms,swap_ms,run_ms
*,*,,,6,1,1,0,0.666667,64.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,5151.667,64.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,5149.000,1.000,16.800,19.000
*,resident,,,2,0,0,0,1.000000,20.000,700.000,700.000,700.000,700.000,700.000,700.000,360.000,20.000,700.000,700.000,700.000,700.000,700.000,700.000,360.000,1.000,0.000,19.000
*,host,,,2,0,0,0,0.500000,64.000,100.000,100.000,100.000,100.000,100.000,100.000,82.000,64.000,84.000,84.000,84.000,84.000,84.000,84.000,74.000,1.000,42.000,19.000
*,peer,,,1,0,0,0,1.000000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,1.000,0.000,19.000
*,unknown,,,1,1,1,0,0.000000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,,,
resnet,*,80,98,4,0,0,0,0.750000,26.000,100.000,100.000,100.000,100.000,100.000,100.000,52.500,26.000,84.000,84.000,84.000,84.000,84.000,84.000,48.500,1.000,21.000,19.000
resnet,resident,80,98,1,0,0,0,1.000000,20.000,20.000,20.000,20.000,20.000,20.000,20.000,20.000,20.000,20.000,20.000,20.000,20.000,20.000,20.000,20.000,1.000,0.000,19.000
resnet,host,80,98,2,0,0,0,0.500000,64.000,100.000,100.000,100.000,100.000,100.000,100.000,82.000,64.000,84.000,84.000,84.000,84.000,84.000,84.000,74.000,1.000,42.000,19.000
resnet,peer,80,98,1,0,0,0,1.000000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,26.000,1.000,0.000,19.000
resnet,unknown,80,98,0,0,0,0,,,,,,,,,,,,,,,,,,,,
"a, ""b""",*,1000,50,2,1,1,0,0.500000,700.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,15350.000,700.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,15350.000,1.000,0.000,19.000
"a, ""b""",resident,1000,50,1,0,0,0,1.000000,700.000,700.000,700.000,700.000,700.000,700.000,700.000,700.000,700.000,700.000,700.000,700.000,700.000,700.000,700.000,700.000,1.000,0.000,19.000
"a, ""b""",host,1000,50,0,0,0,0,,,,,,,,,,,,,,,,,,,,
"a, ""b""",peer,1000,50,0,0,0,0,,,,,,,,,,,,,,,,,,,,
"a, ""b""",unknown,1000,50,1,1,1,0,0.000000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,30000.000,,,
)csv";

TEST(ReportCsvTest, HasTheseLines) { EXPECT_EQ(ReportCsv(SomeReport()), kCsv); }

}  // namespace
}  // namespace torpor::loadgen
