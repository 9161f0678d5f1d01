#include "tools/loadgen/rate_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace torpor::loadgen {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

RateSource Source(const std::string& text) { return *ParseRateSource(text, testing::TempDir()); }

TEST(RateSourceTest, NamesAreReadBack) {
  EXPECT_EQ(Source("trace-like").kind, RateSource::Kind::kTraceLike);
  EXPECT_EQ(Source("gamma:2.5").kind, RateSource::Kind::kGamma);
  EXPECT_EQ(Source("gamma:2.5").shape, 2.5);
  EXPECT_EQ(ParseRateSource("a/b.csv", "/folder")->file, "/folder/a/b.csv");
  EXPECT_EQ(ParseRateSource("/a.csv", "/folder")->file, "/a.csv");
}

TEST(RateSourceTest, RefusesShapesThatAreNone) {
  for (const char* text : {"gamma:", "gamma:0", "gamma:-1", "gamma:nan", "gamma:4x", "gamma: 4"}) {
    EXPECT_THAT(std::string(ParseRateSource(text, "").status().message()),
                HasSubstr("'" + std::string(text) + "'"));
  }
  EXPECT_FALSE(ParseRateSource("", "").ok());
}

TEST(RateSourceTest, FunctionsOwnRatesAreASecondAndNeverChange) {
  const auto rates = MakeRates({}, {2, 0.5}, seconds(600), 1);
  ASSERT_TRUE(rates.ok());
  EXPECT_EQ(rates->minutes(), 1U);
  EXPECT_EQ(rates->At(0, 5), 120);
  EXPECT_EQ(rates->At(1, 0), 30);
}

TEST(RateSourceTest, GammaRatesLastAsLongAsTheLoad) {
  EXPECT_EQ(MakeRates(Source("gamma:4"), {2, 0.5}, seconds(61), 1)->minutes(), 2U);
  EXPECT_EQ(MakeRates(Source("gamma:4"), {2, 0.5}, seconds(1), 1)->minutes(), 1U);
  EXPECT_NEAR(MakeRates(Source("gamma:1e6"), {2}, seconds(60), 1)->At(0, 0), 120, 1);
}

TEST(RateSourceTest, TraceLikeRatesAreForAsManyFunctionsAsThereAre) {
  const auto rates = MakeRates(Source("trace-like"), std::vector<double>(7, 1), seconds(30), 1);
  EXPECT_EQ(rates->functions(), 7U);
  EXPECT_EQ(rates->minutes(), 31U);
}

TEST(RateSourceTest, AFilesRowsAreTakenInOrderUnlessThereAreTooFew) {
  std::ofstream(testing::TempDir() + "/three.csv") << "minute_0\n1\n2\n3\n";
  const RateSource source = Source("three.csv");
  const auto few = MakeRates(source, {1, 1}, seconds(30), 1);
  ASSERT_TRUE(few.ok()) << few.status();
  EXPECT_EQ(few->functions(), 2U);
  EXPECT_EQ(few->At(0, 0), 1);
  EXPECT_EQ(few->At(1, 0), 2);
  // Drawn with replacement: the mean is the table's.
  const auto many = MakeRates(source, std::vector<double>(3000, 1), seconds(30), 1);
  EXPECT_EQ(many->functions(), 3000U);
  EXPECT_NEAR(many->Mean(), 2, 0.06);
}

TEST(RateSourceTest, TheFileThatCannotBeReadIsNamed) {
  EXPECT_THAT(std::string(MakeRates(Source("none.csv"), {1}, seconds(1), 1).status().message()),
              HasSubstr("none.csv: cannot be read"));
}

}  // namespace
}  // namespace torpor::loadgen
