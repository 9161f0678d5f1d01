#include "tools/workload/rate_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace torpor::workload {
namespace {

using testing::HasSubstr;

std::string Refusal(std::string_view csv) {
  const auto rates = ParseRates(csv);
  return rates.ok() ? "accepted" : std::string(rates.status().message());
}

TEST(RateFileTest, ReadsARowAFunction) {
  const auto rates = ParseRates("minute_0,minute_1,minute_2\n11,15,0\n0.5,2,33\n");
  ASSERT_TRUE(rates.ok()) << rates.status();
  EXPECT_EQ(rates->functions(), 2U);
  EXPECT_EQ(rates->minutes(), 3U);
  EXPECT_EQ(rates->At(0, 1), 15);
  EXPECT_EQ(rates->At(1, 0), 0.5);
  EXPECT_EQ(rates->At(1, 2), 33);
}

TEST(RateFileTest, LinesMayEndAsInWindowsAndTheLastNeedNotEnd) {
  const auto rates = ParseRates("minute_0,minute_1\r\n1,2\r\n3,4");
  ASSERT_TRUE(rates.ok()) << rates.status();
  EXPECT_EQ(rates->At(1, 1), 4);
}

TEST(RateFileTest, ErrorsSayLineColumnAndMinute) {
  EXPECT_EQ(Refusal(""),
            "line 1, column 1: the file is empty; its header is minute_0,minute_1,...");
  EXPECT_EQ(Refusal("minute_0\n"), "line 1, column 1: no function's row follows the header");
  EXPECT_EQ(Refusal("function,minute_0\n1,2\n"),
            "line 1, column 1: the header has 'function' where minute_0 belongs");
  EXPECT_EQ(Refusal("minute_0,minute_2\n1,2\n"),
            "line 1, column 10: the header has 'minute_2' where minute_1 belongs");
  EXPECT_EQ(Refusal("minute_0,minute_1\n1,2\n13,fast\n"),
            "line 3, column 4: minute_1 is 'fast', not a number of requests (0 to 1e9)");
  EXPECT_EQ(Refusal("minute_0,minute_1\n1\n"), "line 2, column 2: 1 cell where the header has 2");
  EXPECT_EQ(Refusal("minute_0,minute_1\n1,2,3\n"),
            "line 2, column 5: 3 cells where the header has 2");
}

TEST(RateFileTest, RefusesWhatIsNoRate) {
  for (const char* cell : {"-1", "nan", "inf", "1e10", "", " 1", "1 ", "+1", "0x10", "1;2"}) {
    EXPECT_THAT(Refusal("minute_0,minute_1\n" + std::string(cell) + ",1\n"),
                HasSubstr("line 2, column 1: minute_0 is '" + std::string(cell) + "'"));
  }
  EXPECT_THAT(Refusal("minute_0,minute_1\n1,2\n\n3,4\n"), HasSubstr("line 3"));
  EXPECT_THAT(Refusal("minute_0\n" + std::string(1000, 'x')), HasSubstr("xxx...'"));
}

TEST(RateFileTest, WhatIsWrittenIsReadBack) {
  const MinuteRates rates(3, {0, 1, 2.5, 0.1, 1e9, 1.0 / 3});
  const auto again = ParseRates(FormatRates(rates));
  ASSERT_TRUE(again.ok()) << again.status();
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t minute = 0; minute < 3; ++minute) {
      EXPECT_EQ(again->At(i, minute), rates.At(i, minute));
    }
  }
  EXPECT_EQ(FormatRates(MinuteRates(2, {1, 2, 0, 12})), "minute_0,minute_1\n1,2\n0,12\n");
}

TEST(RateFileTest, NamesTheFile) {
  EXPECT_THAT(std::string(ReadRates("/nowhere.csv").status().message()),
              HasSubstr("/nowhere.csv: cannot be read"));
  const std::string path = testing::TempDir() + "/rates.csv";
  std::ofstream(path) << "minute_0\nx\n";
  EXPECT_THAT(std::string(ReadRates(path).status().message()), HasSubstr(path + ": line 2"));
  std::ofstream(path) << "minute_0\n7\n";
  const auto rates = ReadRates(path);
  ASSERT_TRUE(rates.ok()) << rates.status();
  EXPECT_EQ(rates->At(0, 0), 7);
}

}  // namespace
}  // namespace torpor::workload
