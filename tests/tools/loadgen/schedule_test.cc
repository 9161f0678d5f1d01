#include "tools/loadgen/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace torpor::loadgen {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using workload::MinuteRates;

Workload Load(Duration warm_up, std::optional<Duration> duration) {
  Workload workload;
  workload.warm_up = warm_up;
  workload.duration = duration;
  return workload;
}

std::vector<PlannedRequest> All(const Workload& workload, const MinuteRates& rates) {
  Schedule schedule(workload, rates);
  std::vector<PlannedRequest> requests;
  while (const auto request = schedule.Next()) requests.push_back(*request);
  return requests;
}

TEST(ScheduleTest, TheWarmUpComesFirstAndHasTheFirstMinutesRates) {
  const MinuteRates rates(2, {600, 0});
  const auto requests = All(Load(minutes(3), minutes(2)), rates);
  EXPECT_TRUE(
      std::is_sorted(requests.begin(), requests.end(),
                     [](const PlannedRequest& a, const PlannedRequest& b) { return a.at < b.at; }));
  const auto warm_up =
      std::count_if(requests.begin(), requests.end(),
                    [](const PlannedRequest& request) { return request.at < Duration::zero(); });
  EXPECT_NEAR(static_cast<double>(warm_up), 1800, 170);
  EXPECT_GE(requests.front().at, Duration(-minutes(3)));
  EXPECT_NEAR(static_cast<double>(requests.size()) - static_cast<double>(warm_up), 600, 100);
  EXPECT_LT(requests.back().at, Duration(minutes(1)));
}

TEST(ScheduleTest, TheMeasuredRequestsDoNotDependOnTheWarmUp) {
  const MinuteRates rates = workload::ConstantRates({300, 60});
  const auto cold = All(Load(seconds(0), seconds(20)), rates);
  auto warm = All(Load(seconds(20), seconds(20)), rates);
  std::erase_if(warm, [](const PlannedRequest& request) { return request.at < Duration::zero(); });
  ASSERT_EQ(warm.size(), cold.size());
  for (std::size_t i = 0; i < cold.size(); ++i) {
    EXPECT_EQ(warm[i].at, cold[i].at);
    EXPECT_EQ(warm[i].function, cold[i].function);
  }
}

TEST(ScheduleTest, CountsWhatItPlans) {
  const Workload workload = Load(seconds(5), seconds(20));
  const MinuteRates rates = workload::ConstantRates({300, 60});
  EXPECT_EQ(CountRequests(workload, rates), All(workload, rates).size());
}

TEST(ScheduleTest, ATablesMinutesAreMeasuredUnlessTheWorkloadSaysElse) {
  const MinuteRates table(3, {1, 1, 1});
  Workload from_table = Load(seconds(0), std::nullopt);
  from_table.rates.kind = RateSource::Kind::kFile;
  EXPECT_EQ(MeasuredDuration(from_table, table), Duration(minutes(3)));
  EXPECT_EQ(MeasuredDuration(from_table, MinuteRates(1, {1})), Duration(minutes(1)));
  from_table.duration = seconds(7);
  EXPECT_EQ(MeasuredDuration(from_table, table), Duration(seconds(7)));
  EXPECT_EQ(MeasuredDuration(Load(seconds(0), std::nullopt), workload::ConstantRates({1})),
            Duration(seconds(30)));
}

}  // namespace
}  // namespace torpor::loadgen
