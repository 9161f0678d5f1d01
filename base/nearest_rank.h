#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace torpor {

// Returns the index of the nearest-rank percentile among `count` (> 0) ascending values: the
// smallest value not exceeded by at least the share `rank` (0 to 1) of the values.
inline std::size_t NearestRank(std::size_t count, double rank) {
  // A share like 0.98 is not exact: 0.98 * 50 must not round up to another value.
  const double values = std::ceil(rank * static_cast<double>(count) - 1e-9);
  return std::clamp(static_cast<std::size_t>(std::max(values, 1.0)), std::size_t{1}, count) - 1;
}

}  // namespace torpor
