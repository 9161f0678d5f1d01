#include "tools/workload/rates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace torpor::workload {
namespace {

std::vector<double> RowOf(const MinuteRates& rates, std::size_t function) {
  std::vector<double> row;
  row.reserve(rates.minutes());
  for (std::size_t minute = 0; minute < rates.minutes(); ++minute) {
    row.push_back(rates.At(function, minute));
  }
  return row;
}

double MinuteMean(const MinuteRates& rates, std::size_t minute) {
  double sum = 0;
  for (std::size_t i = 0; i < rates.functions(); ++i) sum += rates.At(i, minute);
  return sum / static_cast<double>(rates.functions());
}

TEST(MinuteRatesTest, HasARowAFunctionAndBeginsAgain) {
  const MinuteRates rates(2, {1, 2, 3, 5});
  EXPECT_EQ(rates.functions(), 2U);
  EXPECT_EQ(rates.At(1, 1), 5);
  EXPECT_EQ(rates.At(1, 2), 3);
  EXPECT_EQ(rates.Mean(1), 4);
  EXPECT_EQ(rates.Mean(), 2.75);
}

TEST(MinuteRatesTest, ScalesEveryRate) {
  MinuteRates rates(2, {1, 2, 3, 5});
  rates.Scale(1.5);
  EXPECT_EQ(rates.At(0, 1), 3);
  EXPECT_EQ(rates.At(1, 1), 7.5);
  rates.Scale(1e300);
  EXPECT_EQ(rates.At(0, 0), kMaxRequestsPerMinute);
}

TEST(MinuteRatesTest, ConstantRatesNeverChange) {
  const MinuteRates rates = ConstantRates({60, 30});
  EXPECT_EQ(rates.minutes(), 1U);
  EXPECT_EQ(rates.At(0, 0), 60);
  EXPECT_EQ(rates.At(1, 17), 30);
}

TEST(DrawRowsTest, DrawsWithReplacementBySeed) {
  const MinuteRates table(1, {1, 2, 3});
  const auto drawn = [&](std::uint64_t seed) {
    const MinuteRates rates = DrawRows(table, 3000, seed);
    std::vector<double> firsts;
    for (std::size_t i = 0; i < rates.functions(); ++i) firsts.push_back(rates.At(i, 0));
    return firsts;
  };
  const auto firsts = drawn(1);
  for (const double value : {1, 2, 3}) {
    EXPECT_NEAR(static_cast<double>(std::count(firsts.begin(), firsts.end(), value)), 1000, 110);
  }
  EXPECT_EQ(firsts, drawn(1));
  EXPECT_NE(firsts, drawn(2));
}

TEST(DrawRowsTest, TheFirstFunctionsDoNotDependOnHowManyFollow) {
  const MinuteRates table(1, {1, 2, 3, 4, 5, 6, 7, 8});
  const MinuteRates few = DrawRows(table, 10, 1);
  const MinuteRates many = DrawRows(table, 100, 1);
  for (std::size_t i = 0; i < few.functions(); ++i) EXPECT_EQ(few.At(i, 0), many.At(i, 0));
}

TEST(TraceLikeRatesTest, HasTheTracesMeansMinuteByMinute) {
  const MinuteRates rates = TraceLikeRates(100000, 1);
  ASSERT_EQ(rates.minutes(), 31U);
  EXPECT_NEAR(rates.Mean(), 9.79, 0.02);
  for (const auto& [minute, mean] :
       {std::pair<std::size_t, double>{0, 12.9}, {4, 7.8}, {15, 7.6}, {23, 11.9}, {30, 0.2}}) {
    EXPECT_NEAR(MinuteMean(rates, minute), mean, 0.05) << minute;
  }
}

TEST(TraceLikeRatesTest, FunctionsSpreadAsInTheTrace) {
  const MinuteRates rates = TraceLikeRates(2000, 1);
  double least = 100;
  double greatest = 0;
  double square = 0;
  for (std::size_t i = 0; i < rates.functions(); ++i) {
    const double mean = rates.Mean(i);
    least = std::min(least, mean);
    greatest = std::max(greatest, mean);
    square += (mean - 9.79) * (mean - 9.79) / static_cast<double>(rates.functions());
  }
  EXPECT_GE(least, 4.9);
  EXPECT_LT(least, 5.2);
  EXPECT_LE(greatest, 14.4);
  EXPECT_GT(greatest, 14.1);
  EXPECT_NEAR(std::sqrt(square), 2.98, 0.4);  // the trace's
}

TEST(TraceLikeRatesTest, RequestsAreWholeAndVaryAsInTheTrace) {
  const MinuteRates rates = TraceLikeRates(2000, 1);
  const double all = rates.Mean();
  double excess = 0;
  double total = 0;
  for (std::size_t minute = 0; minute < rates.minutes(); ++minute) {
    const double of_minute = MinuteMean(rates, minute) / all;
    for (std::size_t i = 0; i < rates.functions(); ++i) {
      const double requests = rates.At(i, minute);
      ASSERT_EQ(requests, std::floor(requests));
      const double expected = rates.Mean(i) * of_minute;
      excess += (requests - expected) * (requests - expected);
      total += expected;
    }
  }
  EXPECT_NEAR(excess / total, 1.8, 0.1);
}

TEST(GammaRatesTest, HaveTheMeanAndTheShape) {
  const MinuteRates rates = GammaRates(std::vector<double>(100, 200), 500, 4, 1);
  EXPECT_NEAR(rates.Mean(), 200, 2);
  double square = 0;
  for (std::size_t i = 0; i < rates.functions(); ++i) {
    for (const double rate : RowOf(rates, i)) square += (rate - 200) * (rate - 200) / 50'000;
  }
  EXPECT_NEAR(std::sqrt(square) / 200, 0.5, 0.01);  // 1 / sqrt(shape)
}

TEST(GammaRatesTest, EveryFunctionHasItsOwnMean) {
  const MinuteRates rates = GammaRates({10, 0, 1000}, 2000, 4, 1);
  EXPECT_NEAR(rates.Mean(0), 10, 0.5);
  EXPECT_EQ(rates.Mean(1), 0);
  EXPECT_NEAR(rates.Mean(2), 1000, 50);
}

TEST(GeneratedRatesTest, TheSeedDecidesAllAndFunctionsStandForThemselves) {
  EXPECT_EQ(RowOf(TraceLikeRates(3, 1), 2), RowOf(TraceLikeRates(30, 1), 2));
  EXPECT_NE(RowOf(TraceLikeRates(3, 1), 2), RowOf(TraceLikeRates(3, 2), 2));
  EXPECT_EQ(RowOf(GammaRates({5, 5}, 9, 2, 1), 1), RowOf(GammaRates({7, 5, 3}, 9, 2, 1), 1));
  EXPECT_NE(RowOf(GammaRates({5, 5}, 9, 2, 1), 1), RowOf(GammaRates({5, 5}, 9, 2, 2), 1));
}

TEST(GeneratedRatesTest, TheFirstRatesAreAlwaysThese) {
  EXPECT_EQ(RowOf(TraceLikeRates(1, 1), 0),
            std::vector<double>({23, 23, 13, 14, 20, 7,  18, 14, 14, 8,  12, 11, 10, 10, 8, 11,
                                 15, 18, 11, 12, 13, 17, 15, 9,  12, 13, 10, 19, 15, 20, 0}));
  EXPECT_EQ(
      RowOf(GammaRates({200}, 3, 4, 1), 0),
      std::vector<double>({0x1.e20b23d8eea64p+7, 0x1.6d3184ef7aeb6p+7, 0x1.9a3e51c9b6b64p+7}));
  const MinuteRates drawn = DrawRows(MinuteRates(1, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), 8, 1);
  std::vector<double> rows;
  for (std::size_t i = 0; i < drawn.functions(); ++i) rows.push_back(drawn.At(i, 0));
  EXPECT_EQ(rows, std::vector<double>({6, 7, 0, 7, 3, 5, 1, 2}));
}

}  // namespace
}  // namespace torpor::workload
