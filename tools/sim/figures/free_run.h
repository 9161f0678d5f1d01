#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/sim/figures/figure.h"

namespace torpor::sim {

struct FreeRunOptions {
  std::vector<std::string> models;  // that functions have in turn; none: all of the profiles
  double minutes = 31;
  std::size_t nodes = 1;
  std::string routing = "function";  // or "least"
};

// A scenario that is none of the paper's: a row for each system, number of functions, rate factor
// and arrivals.
absl::StatusOr<Figure> MakeFreeRun(const FigureOptions& options, const FreeRunOptions& run);

}  // namespace torpor::sim
