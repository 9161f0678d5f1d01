#include "tools/workload/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace torpor::workload {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr ArrivalModel kModels[] = {{ArrivalProcess::kConstant},
                                    {ArrivalProcess::kPoisson},
                                    {ArrivalProcess::kGamma, 3},
                                    {ArrivalProcess::kArtifact}};

std::vector<Arrival> All(const ArrivalModel& model, const MinuteRates& rates, Duration length,
                         std::uint64_t seed = 1) {
  const auto stream = MakeArrivals(model, rates, length, seed);
  std::vector<Arrival> arrivals;
  while (const auto arrival = stream->Next()) arrivals.push_back(*arrival);
  return arrivals;
}

std::vector<Arrival> Of(std::size_t function, std::vector<Arrival> arrivals) {
  std::erase_if(arrivals, [&](const Arrival& arrival) { return arrival.function != function; });
  return arrivals;
}

std::vector<std::pair<std::int64_t, std::size_t>> Pairs(const std::vector<Arrival>& arrivals) {
  std::vector<std::pair<std::int64_t, std::size_t>> pairs;
  pairs.reserve(arrivals.size());
  for (const Arrival& arrival : arrivals) pairs.emplace_back(arrival.at.count(), arrival.function);
  return pairs;
}

struct Gaps {
  double mean_ms = 0;
  double variation = 0;  // standard deviation over mean
};

Gaps GapsOf(const std::vector<Arrival>& arrivals) {
  std::vector<double> gaps;
  gaps.reserve(arrivals.size());
  for (std::size_t i = 1; i < arrivals.size(); ++i) {
    gaps.push_back(ToMilliseconds(arrivals[i].at - arrivals[i - 1].at));
  }
  double mean = 0;
  double square = 0;
  for (const double gap : gaps) mean += gap / static_cast<double>(gaps.size());
  for (const double gap : gaps) {
    square += (gap - mean) * (gap - mean) / static_cast<double>(gaps.size());
  }
  return {mean, std::sqrt(square) / mean};
}

// Arrivals in [from, to) of all functions.
double Count(const std::vector<Arrival>& arrivals, Duration from, Duration to) {
  return static_cast<double>(
      std::count_if(arrivals.begin(), arrivals.end(),
                    [&](const Arrival& arrival) { return arrival.at >= from && arrival.at < to; }));
}

TEST(ArrivalsTest, NamesAreReadBack) {
  for (const ArrivalModel& model : kModels) {
    EXPECT_EQ(ParseArrivalProcess(ArrivalProcessName(model.process)), model.process);
  }
  EXPECT_FALSE(ParseArrivalProcess("uniform").has_value());
}

TEST(ArrivalsTest, ConstantGapsAreEqual) {
  const Gaps gaps = GapsOf(All({ArrivalProcess::kConstant}, ConstantRates({480}), seconds(100)));
  EXPECT_NEAR(gaps.mean_ms, 125, 1e-6);
  EXPECT_NEAR(gaps.variation, 0, 1e-6);
}

TEST(ArrivalsTest, ConstantPhasesDifferBetweenFunctions) {
  const auto arrivals = All({ArrivalProcess::kConstant}, ConstantRates({60, 60, 60}), seconds(1));
  ASSERT_EQ(arrivals.size(), 3U);
  EXPECT_LT(arrivals[0].at, arrivals[1].at);
  EXPECT_LT(arrivals[1].at, arrivals[2].at);
}

TEST(ArrivalsTest, PoissonGapsAreExponential) {
  const auto arrivals = All({ArrivalProcess::kPoisson}, ConstantRates({1200}), seconds(2000));
  const Gaps gaps = GapsOf(arrivals);
  EXPECT_NEAR(gaps.mean_ms, 50, 1);
  EXPECT_NEAR(gaps.variation, 1, 0.03);
  // e^-1 of the gaps are longer than the mean.
  int longer = 0;
  for (std::size_t i = 1; i < arrivals.size(); ++i) {
    longer += arrivals[i].at - arrivals[i - 1].at > milliseconds(50) ? 1 : 0;
  }
  EXPECT_NEAR(longer / static_cast<double>(arrivals.size()), std::exp(-1), 0.01);
}

TEST(ArrivalsTest, ManyPoissonFunctionsTogetherAreAPoissonProcess) {
  const auto arrivals =
      All({ArrivalProcess::kPoisson}, ConstantRates(std::vector<double>(200, 10)), minutes(20));
  const Gaps gaps = GapsOf(arrivals);
  EXPECT_NEAR(gaps.mean_ms, 30, 0.5);
  EXPECT_NEAR(gaps.variation, 1, 0.02);
}

TEST(ArrivalsTest, GammaGapsHaveTheirMeanAndVariation) {
  for (const double variation : {0.25, 1.0, 2.0, 4.0}) {
    const auto arrivals =
        All({ArrivalProcess::kGamma, variation}, ConstantRates({1200}), seconds(10'000));
    const Gaps gaps = GapsOf(arrivals);
    EXPECT_NEAR(gaps.mean_ms, 50, 0.6 * variation) << variation;
    EXPECT_NEAR(gaps.variation / variation, 1, 0.03) << variation;
  }
}

TEST(ArrivalsTest, GammaBeginsWithoutABurstOfAll) {
  // Were the first gap one like all others, so many short ones would make 8 requests a function
  // too many, most of them at the start.
  const auto arrivals =
      All({ArrivalProcess::kGamma, 4}, ConstantRates(std::vector<double>(20'000, 10)), minutes(2));
  EXPECT_NEAR(Count(arrivals, seconds(0), seconds(6)) / 20'000, 1, 0.05);
  EXPECT_NEAR(Count(arrivals, minutes(1), minutes(2)) / 20'000, 10, 0.3);
}

TEST(ArrivalsTest, ArtifactGapsAreWholeMillisecondsFromAPoissonDistribution) {
  const auto arrivals = All({ArrivalProcess::kArtifact}, ConstantRates({1800, 600}), seconds(1000));
  for (const Arrival& arrival : arrivals) ASSERT_EQ(arrival.at.count() % 1'000'000, 0);
  const Gaps gaps = GapsOf(arrivals);
  EXPECT_NEAR(gaps.mean_ms, 25, 0.2);
  EXPECT_NEAR(gaps.variation, 1 / std::sqrt(25.0), 0.01);
  EXPECT_NEAR(static_cast<double>(Of(0, arrivals).size()) / static_cast<double>(arrivals.size()),
              0.75, 0.01);
}

TEST(ArrivalsTest, ArtifactFunctionsWithoutRequestsGetNone) {
  const auto arrivals =
      All({ArrivalProcess::kArtifact}, ConstantRates({0, 30, 0, 0, 30, 0}), hours(2));
  EXPECT_NEAR(static_cast<double>(Of(1, arrivals).size()), 3600, 200);
  EXPECT_EQ(Of(1, arrivals).size() + Of(4, arrivals).size(), arrivals.size());
}

TEST(ArrivalsTest, EveryMinuteHasItsRate) {
  // Ten functions; the rates come again after three minutes.
  std::vector<double> cells;
  for (int i = 0; i < 10; ++i) cells.insert(cells.end(), {600, 0, 60});
  const MinuteRates rates(3, cells);
  for (const ArrivalModel& model : kModels) {
    const auto arrivals = All(model, rates, minutes(300));
    const std::string name(ArrivalProcessName(model.process));
    std::map<std::int64_t, double> per_minute;
    for (const Arrival& arrival : arrivals) per_minute[arrival.at / minutes(1) % 3] += 1.0 / 100;
    EXPECT_NEAR(per_minute[0], 6000, 60) << name;
    EXPECT_EQ(per_minute[1], 0) << name;
    EXPECT_NEAR(per_minute[2], 600, 20) << name;
  }
}

TEST(ArrivalsTest, FewRequestsAMinuteAreNotLostAtItsEnd) {
  // Gaps of twenty minutes on average, rates that change every minute.
  std::vector<double> cells;
  for (int i = 0; i < 50; ++i) cells.insert(cells.end(), {0.1, 0, 0.05});
  const MinuteRates rates(3, cells);
  for (const ArrivalModel& model : kModels) {
    MinuteRates few =
        model.process == ArrivalProcess::kArtifact ? MinuteRates(3, {0.1, 0, 0.05}) : rates;
    const double functions = static_cast<double>(few.functions());
    const double length_min = 60'000 / functions;
    const auto arrivals = All(model, few, minutes(static_cast<int>(length_min)));
    EXPECT_NEAR(static_cast<double>(arrivals.size()), 3000, 350)
        << ArrivalProcessName(model.process);
  }
}

TEST(ArrivalsTest, ArtifactFollowsTheRatesOfTheMinute) {
  const auto arrivals =
      All({ArrivalProcess::kArtifact}, MinuteRates(2, {600, 0, 0, 6000}), minutes(100));
  for (const Arrival& arrival : arrivals) {
    ASSERT_EQ(arrival.function, static_cast<std::size_t>(arrival.at / minutes(1) % 2));
  }
  EXPECT_NEAR(static_cast<double>(arrivals.size()), 50 * 6600, 600);
}

TEST(ArrivalsTest, TheSeedDecidesAll) {
  const MinuteRates rates(2, {300, 100, 20, 180});
  for (const ArrivalModel& model : kModels) {
    const auto once = Pairs(All(model, rates, minutes(3), 1));
    EXPECT_EQ(once, Pairs(All(model, rates, minutes(3), 1)));
    EXPECT_NE(once, Pairs(All(model, rates, minutes(3), 2)));
  }
}

TEST(ArrivalsTest, AnotherFunctionLeavesTheFirstAlone) {
  for (const ArrivalModel& model : kModels) {
    if (model.process == ArrivalProcess::kArtifact) continue;
    EXPECT_EQ(Pairs(All(model, ConstantRates({300}), seconds(20))),
              Pairs(Of(0, All(model, ConstantRates({300, 420}), seconds(20)))));
  }
}

TEST(ArrivalsTest, AreInOrderAndEndInTime) {
  for (const ArrivalModel& model : kModels) {
    const auto arrivals = All(model, ConstantRates({3000, 0, 1200}), seconds(10));
    EXPECT_TRUE(std::is_sorted(arrivals.begin(), arrivals.end(),
                               [](const Arrival& a, const Arrival& b) { return a.at < b.at; }));
    EXPECT_GE(arrivals.front().at, Duration::zero());
    EXPECT_LT(arrivals.back().at, Duration(seconds(10)));
    EXPECT_TRUE(Of(1, arrivals).empty());
  }
}

TEST(ArrivalsTest, WithoutRatesOrTimeThereIsNothingAndItStaysSo) {
  for (const ArrivalModel& model : kModels) {
    EXPECT_TRUE(All(model, ConstantRates({}), seconds(10)).empty());
    EXPECT_TRUE(All(model, ConstantRates({60}), seconds(0)).empty());
    const auto stream = MakeArrivals(model, MinuteRates(2, {0, 0, 0, 0}), hours(1), 1);
    EXPECT_FALSE(stream->Next().has_value());
    EXPECT_FALSE(stream->Next().has_value());
  }
}

// Another machine, compiler or library must give the same.
TEST(ArrivalsTest, TheFirstArrivalsAreAlwaysThese) {
  using Expected = std::vector<std::pair<std::int64_t, std::size_t>>;
  const std::vector<Expected> expected = {
      {{879963389, 1}, {2879963389, 1}, {3221013137, 0}, {60322101314, 0}},
      {{1642044312, 1}, {1680722907, 1}, {3732381122, 0}, {59441536623, 1}},
      {{20707598007, 0}, {20708098400, 0}, {29072916327, 1}, {62495216926, 0}},
      {{1504000000, 1}, {2947000000, 1}, {4449000000, 1}, {60395000000, 0}}};
  for (std::size_t i = 0; i < std::size(kModels); ++i) {
    auto first = Pairs(All(kModels[i], MinuteRates(2, {10, 100, 30, 20}), minutes(2)));
    ASSERT_GT(first.size(), 40U);
    // Some of the first minute and some after the change.
    first = {first[0], first[1], first[2], first[40]};
    EXPECT_EQ(first, expected[i]) << ArrivalProcessName(kModels[i].process);
  }
}

}  // namespace
}  // namespace torpor::workload
