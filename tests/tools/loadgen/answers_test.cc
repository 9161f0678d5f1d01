#include "tools/loadgen/answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace torpor::loadgen {
namespace {

using testing::HasSubstr;

absl::Status Check(const std::string& expected, const std::string& answer, double tolerance = 0) {
  return CheckAnswer({"", expected, tolerance}, answer);
}

TEST(CheckAnswerTest, NumbersAreRightWithinTheTolerance) {
  EXPECT_TRUE(Check(R"({"p":[0.5,0.25]})", R"({"p":[0.5009,0.2491]})", 1e-3).ok());
  EXPECT_FALSE(Check(R"({"p":[0.5,0.25]})", R"({"p":[0.502,0.25]})", 1e-3).ok());
}

TEST(CheckAnswerTest, TheToleranceIsRelativeForLargeNumbers) {
  EXPECT_TRUE(Check("[1000.0]", "[1000.9]", 1e-3).ok());
  EXPECT_FALSE(Check("[1000.0]", "[1001.1]", 1e-3).ok());
}

TEST(CheckAnswerTest, WholeNumbersAndTextAreExact) {
  EXPECT_TRUE(Check(R"({"label":3,"name":"x"})", R"({"name":"x","label":3})", 0.5).ok());
  EXPECT_FALSE(Check(R"({"label":3})", R"({"label":4})", 10).ok());
  EXPECT_FALSE(Check(R"({"name":"x"})", R"({"name":"y"})", 10).ok());
}

TEST(CheckAnswerTest, SaysWhereTheFirstDifferenceIs) {
  const auto status = Check(R"({"a":[1.0,{"b":2.0}]})", R"({"a":[1.0,{"b":3.0}]})", 1e-3);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/a/1/b: expected 2.0, got 3.0"));
}

TEST(CheckAnswerTest, MoreMembersAreAllowedFewerAreNot) {
  EXPECT_TRUE(Check(R"({"a":1})", R"({"a":1,"b":2})").ok());
  EXPECT_FALSE(Check(R"({"a":1,"b":2})", R"({"a":1})").ok());
  EXPECT_FALSE(Check("[1.0,2.0]", "[1.0]", 1).ok());
  EXPECT_FALSE(Check("[1.0]", "[1.0,2.0]", 1).ok());
}

TEST(CheckAnswerTest, WhatIsNoJsonOrNoNumberIsWrong) {
  EXPECT_FALSE(Check("[1.0]", "[nan]", 1e9).ok());
  EXPECT_FALSE(Check("[1.0]", "", 1e9).ok());
  EXPECT_FALSE(Check("[1.0]", "[null]", 1e9).ok());
}

TEST(CheckAnswerTest, WithoutAnExpectationAnythingIsRight) {
  EXPECT_TRUE(CheckAnswer({"body", "", 0}, "no JSON").ok());
}

TEST(ReadExchangesTest, TakesRequestsAsTextOrAsJson) {
  const std::string path = testing::TempDir() + "/exchanges.jsonl";
  std::ofstream(path) << R"({"request":{"x":1},"expected":[1],"tolerance":0.5})"
                      << "\n\n"
                      << R"({"request":"raw","expected":"ok"})"
                      << "\n";
  const auto exchanges = ReadExchanges(path);
  ASSERT_TRUE(exchanges.ok()) << exchanges.status();
  ASSERT_EQ(exchanges->size(), 2U);
  EXPECT_EQ((*exchanges)[0].body, R"({"x":1})");
  EXPECT_EQ((*exchanges)[0].tolerance, 0.5);
  EXPECT_EQ((*exchanges)[1].body, "raw");
}

TEST(ReadExchangesTest, NamesTheLineThatIsWrong) {
  const std::string path = testing::TempDir() + "/broken.jsonl";
  std::ofstream(path) << R"({"request":1,"expected":1})"
                      << "\n{\n";
  EXPECT_THAT(std::string(ReadExchanges(path).status().message()), HasSubstr("broken.jsonl:2:"));
  EXPECT_FALSE(ReadExchanges("/nowhere/file").ok());
  EXPECT_FALSE(ParseExchange(R"({"request":1,"expected":1,"tolerance":"x"})").ok());
}

}  // namespace
}  // namespace torpor::loadgen
