#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace torpor::workload {

// A rate is this at most: requests a minute of one function.
inline constexpr double kMaxRequestsPerMinute = 1e9;

// Requests a minute of every function in every minute: a table of rows, and each function's row.
// Past its last minute it begins again with the first, so that a table of one minute is a rate
// that never changes. A value; not changed while others read it.
class MinuteRates {
 public:
  // `cells` holds row after row, `minutes` (> 0) in each, of rates from 0 to
  // kMaxRequestsPerMinute. Function i has row i.
  MinuteRates(std::size_t minutes, std::vector<double> cells);

  // Function i has row `row_of_function[i]` of `table`'s functions.
  MinuteRates(const MinuteRates& table, const std::vector<std::size_t>& row_of_function);

  std::size_t functions() const { return row_of_function_.size(); }
  std::size_t minutes() const { return minutes_; }

  double At(std::size_t function, std::size_t minute) const {
    return cells_[row_of_function_[function] * minutes_ + minute % minutes_];
  }
  double Mean(std::size_t function) const;  // over the minutes; 0 or more
  double Mean() const;                      // over minutes and functions; 0 without functions

  // Multiplies every rate by `factor` (finite, >= 0).
  void Scale(double factor);

 private:
  std::size_t minutes_;
  std::vector<double> cells_;
  std::vector<std::uint32_t> row_of_function_;
};

// Every function's rate is the same in every minute.
MinuteRates ConstantRates(const std::vector<double>& requests_per_minute);

// As the paper's artifact makes many functions of its trace: each gets one of `table`'s rows (at
// least one), drawn with replacement. The rows of the first functions do not depend on how many
// follow.
MinuteRates DrawRows(const MinuteRates& table, std::size_t functions, std::uint64_t seed);

// Rates like those of the paper's trace for when there is no file of them: 31 minutes of whole
// requests, with the trace's mean in each minute, and for each function a mean of 4.9 to 14.4
// requests a minute, 9.79 on average. A cell's variance is 1.8 times its mean, as in the trace.
MinuteRates TraceLikeRates(std::size_t functions, std::uint64_t seed);

// Every function's rate in every minute is drawn for itself from a Gamma distribution of `shape`
// (> 0; the smaller, the burstier) whose mean is the function's `mean_requests_per_minute`.
MinuteRates GammaRates(const std::vector<double>& mean_requests_per_minute, std::size_t minutes,
                       double shape, std::uint64_t seed);

}  // namespace torpor::workload
