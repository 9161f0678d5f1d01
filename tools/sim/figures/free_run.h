#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/sim/figures/figure.h"

namespace torpor::sim {

// The command line of `torpor-sim run`.
struct FreeRunOptions {
  std::vector<std::string> models;  // of the functions in turn; empty: all models of the profiles
  double minutes = 31;
  std::size_t nodes = 1;
  std::string routing = "function";  // or "least"
};

// Makes a scenario outside of the paper: a row for each system, number of functions, rate factor
// and arrivals. Returns InvalidArgument for an unknown model or system.
absl::StatusOr<Figure> MakeFreeRun(const FigureOptions& options, const FreeRunOptions& run);

}  // namespace torpor::sim
