#include "tools/loadgen/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace torpor::loadgen {
namespace {

using std::chrono::seconds;

struct Gaps {
  double mean_ms = 0;
  double variation = 0;  // standard deviation over mean
};

Gaps GapsOf(const std::vector<Arrival>& schedule) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < schedule.size(); ++i) {
    gaps.push_back(ToMilliseconds(schedule[i].at - schedule[i - 1].at));
  }
  double mean = 0;
  double square = 0;
  for (const double gap : gaps) mean += gap / static_cast<double>(gaps.size());
  for (const double gap : gaps) {
    square += (gap - mean) * (gap - mean) / static_cast<double>(gaps.size());
  }
  return {mean, std::sqrt(square) / mean};
}

TEST(ArrivalsTest, NamesAreReadBack) {
  for (const auto process :
       {ArrivalProcess::kConstant, ArrivalProcess::kPoisson, ArrivalProcess::kArtifact}) {
    EXPECT_EQ(ParseArrivalProcess(ArrivalProcessName(process)), process);
  }
  EXPECT_FALSE(ParseArrivalProcess("uniform").has_value());
}

TEST(ArrivalsTest, ConstantGapsAreEqual) {
  const Gaps gaps = GapsOf(MakeSchedule(ArrivalProcess::kConstant, {8}, seconds(100), 1));
  EXPECT_NEAR(gaps.mean_ms, 125, 1e-6);
  EXPECT_NEAR(gaps.variation, 0, 1e-6);
}

TEST(ArrivalsTest, ConstantPhasesDifferBetweenFunctions) {
  const auto schedule = MakeSchedule(ArrivalProcess::kConstant, {1, 1, 1}, seconds(1), 1);
  ASSERT_EQ(schedule.size(), 3U);
  EXPECT_LT(schedule[0].at, schedule[1].at);
  EXPECT_LT(schedule[1].at, schedule[2].at);
}

TEST(ArrivalsTest, PoissonGapsAreExponential) {
  const auto schedule = MakeSchedule(ArrivalProcess::kPoisson, {20}, seconds(2000), 1);
  const Gaps gaps = GapsOf(schedule);
  EXPECT_NEAR(gaps.mean_ms, 50, 1);
  EXPECT_NEAR(gaps.variation, 1, 0.03);
  // e^-1 of the gaps are longer than the mean.
  int longer = 0;
  for (std::size_t i = 1; i < schedule.size(); ++i) {
    longer += schedule[i].at - schedule[i - 1].at > std::chrono::milliseconds(50) ? 1 : 0;
  }
  EXPECT_NEAR(longer / static_cast<double>(schedule.size()), std::exp(-1), 0.01);
}

TEST(ArrivalsTest, ArtifactGapsAreWholeMillisecondsFromAPoissonDistribution) {
  const auto schedule = MakeSchedule(ArrivalProcess::kArtifact, {30, 10}, seconds(1000), 1);
  for (const Arrival& arrival : schedule) {
    ASSERT_EQ(arrival.at.count() % 1'000'000, 0);
  }
  const Gaps gaps = GapsOf(schedule);
  EXPECT_NEAR(gaps.mean_ms, 25, 0.2);
  EXPECT_NEAR(gaps.variation, 1 / std::sqrt(25.0), 0.01);
  const auto first = std::count_if(schedule.begin(), schedule.end(),
                                   [](const Arrival& arrival) { return arrival.function == 0; });
  EXPECT_NEAR(static_cast<double>(first) / static_cast<double>(schedule.size()), 0.75, 0.01);
}

TEST(ArrivalsTest, TheSeedDecidesAll) {
  for (const auto process :
       {ArrivalProcess::kConstant, ArrivalProcess::kPoisson, ArrivalProcess::kArtifact}) {
    const auto times = [&](std::uint64_t seed) {
      std::vector<std::int64_t> at;
      for (const Arrival& arrival : MakeSchedule(process, {5, 3}, seconds(20), seed)) {
        at.push_back(arrival.at.count());
      }
      return at;
    };
    EXPECT_EQ(times(1), times(1));
    EXPECT_NE(times(1), times(2));
  }
}

TEST(ArrivalsTest, AnotherFunctionLeavesTheFirstAlone) {
  const auto alone = MakeSchedule(ArrivalProcess::kPoisson, {5}, seconds(20), 1);
  auto both = MakeSchedule(ArrivalProcess::kPoisson, {5, 7}, seconds(20), 1);
  std::erase_if(both, [](const Arrival& arrival) { return arrival.function != 0; });
  ASSERT_EQ(alone.size(), both.size());
  for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(alone[i].at, both[i].at);
}

TEST(ArrivalsTest, SchedulesAreSortedAndEndInTime) {
  const auto schedule = MakeSchedule(ArrivalProcess::kPoisson, {50, 0, 20}, seconds(10), 1);
  EXPECT_TRUE(std::is_sorted(schedule.begin(), schedule.end(),
                             [](const Arrival& a, const Arrival& b) { return a.at < b.at; }));
  EXPECT_LT(schedule.back().at, Duration(seconds(10)));
  for (const Arrival& arrival : schedule) EXPECT_NE(arrival.function, 1U);
}

TEST(ArrivalsTest, WithoutRatesThereIsNothing) {
  EXPECT_TRUE(MakeSchedule(ArrivalProcess::kArtifact, {0, 0}, seconds(10), 1).empty());
  EXPECT_TRUE(MakeSchedule(ArrivalProcess::kPoisson, {}, seconds(10), 1).empty());
}

}  // namespace
}  // namespace torpor::loadgen
