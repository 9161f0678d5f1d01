#include "tools/loadgen/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace torpor::loadgen {
namespace {

using testing::HasSubstr;

constexpr const char* kWhole = R"(
version: v1
target: 127.0.0.1:8000
arrivals: gamma
cv: 2.5
rates: gamma:4
seed: 9
duration_s: 20
warm_up_s: 0.5
timeout_s: 7
functions:
  - name: a
    rate_per_s: 2.5
    objective_ms: 80
    percentile: 99.5
    body: '{"x":1}'
  - name: b
    path: /function/b/encode
    expected: pairs.jsonl
  - name: c
    url: http://localhost:9000/infer?x=1
    body: text
)";

class WorkloadTest : public testing::Test {
 protected:
  WorkloadTest() {
    std::ofstream(testing::TempDir() + "/pairs.jsonl") << R"({"request":1,"expected":2})"
                                                       << "\n";
  }

  static absl::StatusOr<Workload> Parse(const std::string& yaml, const std::string& target = "") {
    return ParseWorkload(yaml, testing::TempDir(), target);
  }

  static std::string Refusal(const std::string& yaml) {
    const auto workload = Parse(yaml);
    return workload.ok() ? "accepted" : std::string(workload.status().message());
  }
};

TEST_F(WorkloadTest, ReadsEverything) {
  const auto workload = Parse(kWhole);
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ(workload->arrivals.process, workload::ArrivalProcess::kGamma);
  EXPECT_EQ(workload->arrivals.variation, 2.5);
  EXPECT_EQ(workload->rates.kind, RateSource::Kind::kGamma);
  EXPECT_EQ(workload->seed, 9U);
  EXPECT_EQ(workload->duration, Duration(std::chrono::seconds(20)));
  EXPECT_EQ(workload->warm_up, Duration(std::chrono::milliseconds(500)));
  EXPECT_EQ(workload->timeout, Duration(std::chrono::seconds(7)));
  ASSERT_EQ(workload->functions.size(), 3U);
  const FunctionLoad& a = workload->functions[0];
  EXPECT_EQ(a.host, "127.0.0.1:8000");
  EXPECT_EQ(a.path, "/function/a/");
  EXPECT_EQ(a.rate_per_s, 2.5);
  EXPECT_EQ(a.objective, Duration(std::chrono::milliseconds(80)));
  EXPECT_EQ(a.percentile, 99.5);
  EXPECT_EQ(a.exchanges[0].body, R"({"x":1})");
  EXPECT_EQ(workload->functions[1].path, "/function/b/encode");
  EXPECT_EQ(workload->functions[1].exchanges[0].expected, "2");
  EXPECT_EQ(workload->functions[2].host, "localhost:9000");
  EXPECT_EQ(workload->functions[2].path, "/infer?x=1");
}

TEST_F(WorkloadTest, WhatIsLeftOutHasItsDefault) {
  const auto workload = Parse("version: v1\ntarget: h:1\nfunctions:\n  - {name: a, body: x}\n");
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ(workload->arrivals.process, workload::ArrivalProcess::kPoisson);
  EXPECT_EQ(workload->rates.kind, RateSource::Kind::kFunctions);
  EXPECT_FALSE(workload->duration.has_value());
  EXPECT_EQ(workload->functions[0].rate_per_s, 1);
  EXPECT_EQ(workload->functions[0].percentile, 98);
}

TEST_F(WorkloadTest, RatesAreThoseOfTheFunctionsOrOfTheTable) {
  std::ofstream(testing::TempDir() + "/rates.csv") << "minute_0,minute_1\n30,6\n";
  const std::string functions = "functions:\n  - {name: a, body: x}\n";
  const auto own = Parse("version: v1\ntarget: h:1\n" + functions);
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(MakeRates(*own)->At(0, 7), 60);
  const auto table = Parse("version: v1\ntarget: h:1\nrates: rates.csv\n" + functions);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(MakeRates(*table)->At(0, 1), 6);
}

TEST_F(WorkloadTest, TheTargetGivenReplacesTheFilesOwn) {
  const auto workload = Parse(kWhole, "10.0.0.1:80");
  ASSERT_TRUE(workload.ok());
  EXPECT_EQ(workload->functions[0].host, "10.0.0.1:80");
  EXPECT_EQ(workload->functions[2].host, "localhost:9000");
}

TEST_F(WorkloadTest, RefusesMistakesByNameAndLine) {
  const std::string head = "version: v1\ntarget: h:1\nfunctions:\n";
  EXPECT_THAT(Refusal("version: v2\n"), HasSubstr("version"));
  EXPECT_THAT(Refusal("version: v1\nfunctions: []\n"), HasSubstr("no functions"));
  EXPECT_THAT(Refusal(head + "  - {name: a, body: x, rate: 3}\n"), HasSubstr("'rate'"));
  EXPECT_THAT(Refusal(head + "  - {name: a, body: x, rate: 3}\n"), HasSubstr("line 4"));
  EXPECT_THAT(Refusal(head + "  - {name: a, body: x, rate_per_s: fast}\n"),
              HasSubstr("rate_per_s"));
  EXPECT_THAT(Refusal(head + "  - {name: a, body: x, rate_per_s: -1}\n"), HasSubstr("rate_per_s"));
  EXPECT_THAT(Refusal(head + "  - {name: a}\n"), HasSubstr("'body' or 'expected'"));
  EXPECT_THAT(Refusal(head + "  - {name: a, expected: missing}\n"), HasSubstr("missing"));
  EXPECT_THAT(Refusal(head + "  - {body: x}\n"), HasSubstr("name"));
  EXPECT_THAT(Refusal(head + "  - {name: a, body: x}\n  - {name: a, body: x}\n"),
              HasSubstr("second"));
  EXPECT_THAT(Refusal(head + "  - {name: a, body: x, url: 'ftp://x'}\n"), HasSubstr("http://"));
  EXPECT_THAT(Refusal("version: v1\nfunctions:\n  - {name: a, body: x}\n"), HasSubstr("target"));
  EXPECT_THAT(Refusal(head + "  - {name: a, body: x}\narrivals: sometimes\n"),
              HasSubstr("poisson"));
  const std::string whole = head + "  - {name: a, body: x, rate_per_s: 2}\n";
  EXPECT_THAT(Refusal(whole + "rates: trace-like\n"), HasSubstr("line 4: 'rate_per_s' and"));
  EXPECT_EQ(Refusal(whole + "rates: gamma:4\n"), "accepted");
  EXPECT_THAT(Refusal(whole + "rates: gamma:much\n"), HasSubstr("line 5: the shape in"));
  EXPECT_THAT(Refusal(whole + "cv: 2\n"), HasSubstr("line 5: 'cv' is for gamma"));
  EXPECT_THAT(Refusal(whole + "arrivals: gamma\ncv: 0\n"), HasSubstr("line 6: 'cv' is not"));
  EXPECT_THAT(Refusal(head + "  - {name: a, body: x, percentile: 0}\n"), HasSubstr("percentile"));
  EXPECT_THAT(Refusal(head + "  - {name: a, body: x, percentile: 0.98}\n"), HasSubstr("98"));
  EXPECT_NE(Refusal("a: [b"), "accepted");
  EXPECT_NE(Refusal("text"), "accepted");
  EXPECT_NE(Refusal(""), "accepted");
}

TEST_F(WorkloadTest, NamesTheFileThatCannotBeRead) {
  EXPECT_THAT(std::string(ReadWorkload("/nowhere.yaml", "").status().message()),
              HasSubstr("/nowhere.yaml"));
}

}  // namespace
}  // namespace torpor::loadgen
