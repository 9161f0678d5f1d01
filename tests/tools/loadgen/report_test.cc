#include "tools/loadgen/report.h"

#include <gtest/gtest.h>

namespace torpor::loadgen {
namespace {

using std::chrono::milliseconds;

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

const std::vector<ReportedFunction> kTwo = {{"a", milliseconds(50), 98},
                                            {"b", milliseconds(500), 50}};

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
  EXPECT_EQ(report.totals().requests, 5U);
  EXPECT_EQ(report.totals().errors, 3U);
  EXPECT_EQ(report.totals().timeouts, 1U);
  EXPECT_EQ(report.totals().wrong_answers, 1U);
  EXPECT_EQ(report.functions[0].requests.all.totals.requests, 3U);
  EXPECT_EQ(report.functions[1].requests.all.totals.errors, 2U);
  EXPECT_FALSE(report.Clean());
}

TEST(SummariseTest, WhatFailsOrIsLateMissesTheObjective) {
  const Report report = Summarise(
      kTwo,
      {Answered(0, 50), Answered(0, 51), Ended(0, Outcome::kTimeout, 20),
       Ended(0, Outcome::kHttpError, 1), Ended(0, Outcome::kWrongAnswer, 1), Answered(1, 51)},
      milliseconds(1000));
  EXPECT_NEAR(report.functions[0].requests.all.totals.Attainment(), 0.2, 1e-9);
  EXPECT_NEAR(report.functions[1].requests.all.totals.Attainment(), 1, 1e-9);
  EXPECT_NEAR(report.totals().Attainment(), 2.0 / 6, 1e-9);
}

TEST(SummariseTest, RefusalsDoNotMakeAFunctionLookQuick) {
  const Report report = Summarise(
      kTwo,
      {Answered(0, 100), Ended(0, Outcome::kHttpError, 1), Ended(0, Outcome::kTransportError, 1)},
      milliseconds(1000));
  EXPECT_EQ(report.functions[0].requests.all.latency.p50_ms, 100);
  EXPECT_EQ(report.requests.all.latency.p50_ms, 100);
}

TEST(SummariseTest, TimeOutsCountAsLatencies) {
  const Report report =
      Summarise(kTwo, {Answered(0, 10), Ended(0, Outcome::kTimeout, 3000)}, milliseconds(1000));
  EXPECT_EQ(report.requests.all.latency.max_ms, 3000);
}

TEST(SummariseTest, TheWarmUpIsKeptApartButMustBeCleanToo) {
  Record warm = Ended(0, Outcome::kWrongAnswer, 9000);
  warm.intended = milliseconds(-1);
  const Report report = Summarise(kTwo, {warm, Answered(0, 10)}, milliseconds(1000));
  EXPECT_EQ(report.totals().requests, 1U);
  EXPECT_EQ(report.totals().wrong_answers, 0U);
  EXPECT_EQ(report.warm_up.wrong_answers, 1U);
  EXPECT_EQ(report.requests.all.latency.max_ms, 10);
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
  EXPECT_EQ(report.totals().resident, 1U);
  EXPECT_EQ(report.totals().swaps_pcie, 2U);
  EXPECT_EQ(report.totals().swaps_nvlink, 1U);
  EXPECT_NEAR(report.functions[0].requests.all.queue_ms, 4, 1e-9);
  EXPECT_NEAR(report.functions[0].requests.all.swap_ms, 30, 1e-9);
  EXPECT_NEAR(report.functions[0].requests.all.run_ms, 60, 1e-9);
  EXPECT_NEAR(report.gpus.at(0).load, 0.26, 1e-9);
  EXPECT_EQ(report.gpus.at(1).requests, 1U);
}

TEST(SummariseTest, LatenciesCountFromTheIntendedTimeAndFromTheTimeSent) {
  Record late = Answered(0, 100);
  late.lag = milliseconds(30);
  const Report report = Summarise(kTwo, {late, Answered(1, 20)}, milliseconds(1000));
  EXPECT_EQ(report.requests.all.latency.max_ms, 100);
  EXPECT_EQ(report.requests.all.latency_from_sent.max_ms, 70);
  EXPECT_EQ(report.functions[0].requests.all.latency_from_sent.p50_ms, 70);
  EXPECT_EQ(report.functions[1].requests.all.latency_from_sent.p50_ms, 20);
  EXPECT_EQ(report.lag.max_ms, 30);
  EXPECT_EQ(report.late, 1U);
}

TEST(SummariseTest, PathsAreToldApart) {
  std::vector<Record> records;
  for (const auto& [path, latency_ms] : {std::pair{Residency::kResident, 10},
                                         {Residency::kHost, 40},
                                         {Residency::kHost, 60},
                                         {Residency::kPeer, 20}}) {
    Record record = Answered(0, latency_ms);
    record.residency = path;
    record.gpu = 0;
    record.swap = milliseconds(latency_ms - 10);
    records.push_back(record);
  }
  records.push_back(Ended(1, Outcome::kTimeout, 900));
  const Report report = Summarise(kTwo, records, milliseconds(1000));
  const auto path = [](const Breakdown& breakdown, Residency residency) -> const Slice& {
    return breakdown.paths.at(static_cast<std::size_t>(residency));
  };
  EXPECT_EQ(path(report.requests, Residency::kResident).latency.p50_ms, 10);
  EXPECT_EQ(path(report.requests, Residency::kHost).totals.requests, 2U);
  EXPECT_EQ(path(report.requests, Residency::kHost).latency.max_ms, 60);
  EXPECT_EQ(path(report.requests, Residency::kHost).swap_ms, 40);
  EXPECT_EQ(path(report.requests, Residency::kHost).totals.attained, 1U);
  EXPECT_EQ(path(report.requests, Residency::kPeer).latency.p50_ms, 20);
  EXPECT_EQ(path(report.requests, Residency::kUnknown).totals.timeouts, 1U);
  EXPECT_EQ(path(report.functions[1].requests, Residency::kHost).totals.requests, 0U);
}

TEST(SummariseTest, AFunctionCompliesIfItsPercentileDoes) {
  std::vector<Record> records;
  for (int i = 0; i < 100; ++i) {
    records.push_back(Answered(0, i < 98 ? 50 : 51));
    records.push_back(Answered(1, i < 49 ? 500 : 501));
  }
  const Report report = Summarise(kTwo, records, milliseconds(1000));
  EXPECT_TRUE(report.functions[0].Compliant());
  EXPECT_EQ(report.functions[0].at_percentile_ms, 50);
  EXPECT_FALSE(report.functions[1].Compliant());
  EXPECT_EQ(report.functions[1].at_percentile_ms, 501);
  EXPECT_EQ(report.CompliantFunctions(), 1U);
}

TEST(SummariseTest, MinutesAreThoseOfTheIntendedTimes) {
  Record first = Answered(0, 10);
  first.intended = std::chrono::seconds(59);
  Record third = Answered(0, 90'000);
  third.intended = std::chrono::seconds(120);
  third.lag = milliseconds(3);
  const Report report = Summarise(kTwo, {third, first}, std::chrono::minutes(3));
  ASSERT_EQ(report.minutes.size(), 3U);
  EXPECT_EQ(report.minutes[0].latency.max_ms, 10);
  EXPECT_EQ(report.minutes[1].totals.requests, 0U);
  EXPECT_EQ(report.minutes[2].latency.max_ms, 90'000);
  EXPECT_EQ(report.minutes[2].lag.max_ms, 3);
  EXPECT_EQ(report.minutes[2].totals.attained, 0U);
}

}  // namespace
}  // namespace torpor::loadgen
