#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace torpor::workload {

// Largest rate of a function, in requests a minute.
inline constexpr double kMaxRequestsPerMinute = 1e9;

// Requests a minute of every function in every minute: a table of rows, and each function's row.
// After the last minute the table repeats, so a table of a single minute is a constant rate. A
// value type: safe for concurrent reads.
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

// Makes constant rates.
MinuteRates ConstantRates(const std::vector<double>& requests_per_minute);

// Makes many functions of a trace like the paper's artifact: each function draws a row of `table`
// (not empty), with replacement. The rows of the first functions do not depend on the number of
// functions.
MinuteRates DrawRows(const MinuteRates& table, std::size_t functions, std::uint64_t seed);

// Makes rates like the paper's trace, for use without the trace's file: 31 minutes of whole
// requests, with the trace's mean in each minute, and a mean of 4.9 to 14.4 requests a minute for
// each function, 9.79 on average. A cell's variance is 1.8 times its mean, as in the trace.
MinuteRates TraceLikeRates(std::size_t functions, std::uint64_t seed);

// Draws every function's rate in every minute independently from a Gamma distribution of `shape` (>
// 0; the smaller, the burstier) with the function's `mean_requests_per_minute` as mean.
MinuteRates GammaRates(const std::vector<double>& mean_requests_per_minute, std::size_t minutes,
                       double shape, std::uint64_t seed);

}  // namespace torpor::workload
