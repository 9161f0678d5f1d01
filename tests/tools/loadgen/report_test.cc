#include "tools/loadgen/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"

namespace torpor::loadgen {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

Record Answered(std::size_t function, int latency_ms) {
  Record record;
  record.function = function;
  record.http_status = 200;
  record.latency = milliseconds(latency_ms);
  return record;
}

Record Ended(std::size_t function, Outcome outcome, int latency_ms) {
  Record record = Answered(function, latency_ms);
  record.outcome = outcome;
  return record;
}

const std::vector<ReportedFunction> kTwo = {{"a", milliseconds(50)}, {"b", milliseconds(500)}};

TEST(DescribeTest, PercentilesAreTheNearestRanks) {
  std::vector<Duration> values;
  for (int i = 100; i >= 1; --i) values.emplace_back(milliseconds(i));
  const Distribution d = Describe(values);
  EXPECT_EQ(d.p50_ms, 50);
  EXPECT_EQ(d.p90_ms, 90);
  EXPECT_EQ(d.p98_ms, 98);
  EXPECT_EQ(d.p99_ms, 99);
  EXPECT_EQ(d.p999_ms, 100);
  EXPECT_EQ(d.max_ms, 100);
  EXPECT_NEAR(d.mean_ms, 50.5, 1e-9);
}

TEST(DescribeTest, FewValuesOrNone) {
  EXPECT_EQ(Describe({}).p99_ms, 0);
  EXPECT_EQ(Describe({milliseconds(7)}).p50_ms, 7);
  EXPECT_EQ(Describe({milliseconds(1), milliseconds(9)}).p50_ms, 1);
}

TEST(SummariseTest, CountsEveryOutcomeOnce) {
  const Report report = Summarise(
      kTwo,
      {Answered(0, 10), Ended(0, Outcome::kWrongAnswer, 10), Ended(0, Outcome::kHttpError, 1),
       Ended(1, Outcome::kTimeout, 9), Ended(1, Outcome::kTransportError, 1)},
      milliseconds(1000));
  EXPECT_EQ(report.totals.requests, 5U);
  EXPECT_EQ(report.totals.errors, 3U);
  EXPECT_EQ(report.totals.timeouts, 1U);
  EXPECT_EQ(report.totals.wrong_answers, 1U);
  EXPECT_EQ(report.functions[0].totals.requests, 3U);
  EXPECT_EQ(report.functions[1].totals.errors, 2U);
  EXPECT_FALSE(report.Clean());
}

TEST(SummariseTest, WhatFailsOrIsLateMissesTheObjective) {
  const Report report = Summarise(
      kTwo,
      {Answered(0, 50), Answered(0, 51), Ended(0, Outcome::kTimeout, 20),
       Ended(0, Outcome::kHttpError, 1), Ended(0, Outcome::kWrongAnswer, 1), Answered(1, 51)},
      milliseconds(1000));
  EXPECT_NEAR(report.functions[0].totals.Attainment(), 0.2, 1e-9);
  EXPECT_NEAR(report.functions[1].totals.Attainment(), 1, 1e-9);
  EXPECT_NEAR(report.totals.Attainment(), 2.0 / 6, 1e-9);
}

TEST(SummariseTest, RefusalsDoNotMakeAFunctionLookQuick) {
  const Report report = Summarise(
      kTwo,
      {Answered(0, 100), Ended(0, Outcome::kHttpError, 1), Ended(0, Outcome::kTransportError, 1)},
      milliseconds(1000));
  EXPECT_EQ(report.functions[0].latency.p50_ms, 100);
  EXPECT_EQ(report.latency.p50_ms, 100);
}

TEST(SummariseTest, TimeOutsCountAsLatencies) {
  const Report report =
      Summarise(kTwo, {Answered(0, 10), Ended(0, Outcome::kTimeout, 3000)}, milliseconds(1000));
  EXPECT_EQ(report.latency.max_ms, 3000);
}

TEST(SummariseTest, TheWarmUpIsKeptApartButMustBeCleanToo) {
  Record warm = Ended(0, Outcome::kWrongAnswer, 9000);
  warm.warm_up = true;
  const Report report = Summarise(kTwo, {warm, Answered(0, 10)}, milliseconds(1000));
  EXPECT_EQ(report.totals.requests, 1U);
  EXPECT_EQ(report.totals.wrong_answers, 0U);
  EXPECT_EQ(report.warm_up.wrong_answers, 1U);
  EXPECT_EQ(report.latency.max_ms, 10);
  EXPECT_FALSE(report.Clean());
}

TEST(SummariseTest, SwapsTimesAndGpuLoadComeFromTheAnswers) {
  std::vector<Record> records;
  for (const Residency residency :
       {Residency::kResident, Residency::kHost, Residency::kHost, Residency::kPeer}) {
    Record record = Answered(0, 100);
    record.residency = residency;
    record.gpu = residency == Residency::kPeer ? 1 : 0;
    record.queue = milliseconds(4);
    record.swap = milliseconds(residency == Residency::kResident ? 0 : 40);
    record.run = milliseconds(60);
    records.push_back(record);
  }
  const Report report = Summarise(kTwo, records, milliseconds(1000));
  EXPECT_EQ(report.totals.resident, 1U);
  EXPECT_EQ(report.totals.swaps_pcie, 2U);
  EXPECT_EQ(report.totals.swaps_nvlink, 1U);
  EXPECT_NEAR(report.functions[0].queue_ms, 4, 1e-9);
  EXPECT_NEAR(report.functions[0].swap_ms, 30, 1e-9);
  EXPECT_NEAR(report.functions[0].run_ms, 60, 1e-9);
  EXPECT_NEAR(report.gpus.at(0).load, 0.26, 1e-9);
  EXPECT_EQ(report.gpus.at(1).requests, 1U);
}

TEST(ReportJsonTest, HoldsTheTotalsAtItsTop) {
  Record swapped = Answered(1, 20);
  swapped.residency = Residency::kHost;
  swapped.gpu = 1;
  const Report report = Summarise(kTwo, {swapped, Answered(0, 10)}, milliseconds(1000));
  const auto json = nlohmann::json::parse(ReportJson(report));
  for (const char* name : {"requests", "errors", "wrong_answers", "swaps_pcie", "swaps_nvlink"}) {
    EXPECT_TRUE(json.at(name).is_number_integer()) << name;
  }
  EXPECT_EQ(json["requests"], 2);
  EXPECT_EQ(json["swaps_pcie"], 1);
  ASSERT_EQ(json["functions"].size(), 2U);
  EXPECT_EQ(json["functions"][1]["name"], "b");
  EXPECT_EQ(json["functions"][1]["objective_ms"], 500);
  EXPECT_EQ(json["functions"][1]["latency_ms"]["p98"], 20);
  EXPECT_EQ(json["gpus"][0]["gpu"], 1);
}

TEST(ReportTableTest, HasALineAFunction) {
  const std::string table =
      ReportTable(Summarise(kTwo, {Answered(0, 10), Answered(1, 20)}, milliseconds(1000)));
  EXPECT_THAT(table, HasSubstr("\na "));
  EXPECT_THAT(table, HasSubstr("\nb "));
  EXPECT_THAT(table, HasSubstr("\nall "));
  EXPECT_THAT(table, HasSubstr("100.0%"));
}

}  // namespace
}  // namespace torpor::loadgen
