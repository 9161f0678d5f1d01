#include "tools/workload/rates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "tools/workload/random.h"

namespace torpor::workload {
namespace {

// The means of the trace's minutes over its 203 functions.
constexpr std::array kTraceMinutes = {
    12.9, 12.8, 13.1, 9.7,  7.8,  9.2,  8.5,  8.1,  8.3,  9.0,  9.8,  10.3, 10.0, 9.0,  7.9, 7.6,
    9.3,  10.2, 9.9,  10.2, 10.8, 10.5, 10.6, 11.9, 11.7, 11.3, 10.8, 10.9, 11.0, 10.1, 0.2};
constexpr double kMinMean = 4.9;
constexpr double kTraceMean = 9.79;
constexpr double kMaxMean = 14.4;
// Variance over mean of a cell's requests, given the means of function and minute.
constexpr double kVarianceOverMean = 1.8;

// Draws a function's mean, uniform on either side of the trace's mean. Shares of 0.485 and 0.515
// would give the trace's mean, but DrawTraceRow refuses more requests at the upper end than at the
// lower. The shares below, found by measurement, compensate.
double DrawFunctionMean(Random& random) {
  constexpr double kShareBelow = 0.476;
  const bool below = random.Uniform() < kShareBelow;
  const double from = below ? kMinMean : kTraceMean;
  return from + random.Uniform() * ((below ? kTraceMean : kMaxMean) - from);
}

// Draws from a negative binomial: a Poisson distribution with a Gamma-distributed mean.
double DrawRequests(double mean, Random& random) {
  constexpr double kScale = kVarianceOverMean - 1;
  return static_cast<double>(random.Poisson(kScale * random.Gamma(mean / kScale)));
}

// Draws a function's requests of each minute. Draws again until the mean lies within the trace's
// range of means.
std::array<double, kTraceMinutes.size()> DrawTraceRow(Random& random) {
  std::array<double, kTraceMinutes.size()> row{};
  const double factor = DrawFunctionMean(random) / kTraceMean;
  while (true) {
    std::transform(kTraceMinutes.begin(), kTraceMinutes.end(), row.begin(),
                   [&](double minute) { return DrawRequests(factor * minute, random); });
    const double mean = std::accumulate(row.begin(), row.end(), 0.0) / row.size();
    if (mean >= kMinMean && mean <= kMaxMean) return row;
  }
}

}  // namespace

MinuteRates::MinuteRates(std::size_t minutes, std::vector<double> cells)
    : minutes_(minutes), cells_(std::move(cells)) {
  TORPOR_CHECK(minutes > 0 && cells_.size() % minutes == 0);
  TORPOR_CHECK(cells_.size() / minutes <= std::numeric_limits<std::uint32_t>::max());
  TORPOR_CHECK(std::all_of(cells_.begin(), cells_.end(),
                           [](double rate) { return rate >= 0 && rate <= kMaxRequestsPerMinute; }));
  row_of_function_.resize(cells_.size() / minutes);
  std::iota(row_of_function_.begin(), row_of_function_.end(), 0U);
}

MinuteRates::MinuteRates(const MinuteRates& table, const std::vector<std::size_t>& row_of_function)
    : minutes_(table.minutes_), cells_(table.cells_) {
  row_of_function_.reserve(row_of_function.size());
  for (const std::size_t row : row_of_function) {
    row_of_function_.push_back(table.row_of_function_.at(row));
  }
}

double MinuteRates::Mean(std::size_t function) const {
  double sum = 0;
  for (std::size_t minute = 0; minute < minutes_; ++minute) sum += At(function, minute);
  return sum / static_cast<double>(minutes_);
}

double MinuteRates::Mean() const {
  double sum = 0;
  for (std::size_t function = 0; function < functions(); ++function) sum += Mean(function);
  return functions() == 0 ? 0 : sum / static_cast<double>(functions());
}

void MinuteRates::Scale(double factor) {
  TORPOR_CHECK(factor >= 0 && std::isfinite(factor));
  for (double& rate : cells_) rate = std::min(rate * factor, kMaxRequestsPerMinute);
}

MinuteRates ConstantRates(const std::vector<double>& requests_per_minute) {
  return {1, requests_per_minute};
}

MinuteRates DrawRows(const MinuteRates& table, std::size_t functions, std::uint64_t seed) {
  Random random(seed, Random::Purpose::kRows);
  std::vector<std::size_t> rows(functions);
  std::generate(rows.begin(), rows.end(), [&] { return random.Below(table.functions()); });
  return {table, rows};
}

MinuteRates TraceLikeRates(std::size_t functions, std::uint64_t seed) {
  std::vector<double> cells;
  cells.reserve(functions * kTraceMinutes.size());
  for (std::size_t function = 0; function < functions; ++function) {
    Random random(seed, Random::Purpose::kRates, function);
    const auto row = DrawTraceRow(random);
    cells.insert(cells.end(), row.begin(), row.end());
  }
  return {kTraceMinutes.size(), std::move(cells)};
}

MinuteRates GammaRates(const std::vector<double>& mean_requests_per_minute, std::size_t minutes,
                       double shape, std::uint64_t seed) {
  std::vector<double> cells;
  cells.reserve(mean_requests_per_minute.size() * minutes);
  for (std::size_t function = 0; function < mean_requests_per_minute.size(); ++function) {
    Random random(seed, Random::Purpose::kRates, function);
    for (std::size_t minute = 0; minute < minutes; ++minute) {
      const double rate = mean_requests_per_minute[function] * random.Gamma(shape) / shape;
      cells.push_back(std::min(rate, kMaxRequestsPerMinute));
    }
  }
  return {minutes, std::move(cells)};
}

}  // namespace torpor::workload
