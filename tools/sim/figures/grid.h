#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/sim/figures/figure.h"

namespace torpor::sim {

// Options and node of a figure's cases.
struct Testbed {
  FigureOptions options;
  NodeModel node;
};

// The options' node, or the built-in node `name`.
std::shared_ptr<const Testbed> MakeTestbed(const FigureOptions& options, const std::string& node);

// A variable of a figure, as the labels of each value.
using Axis = std::vector<Json>;

// The options' lists, or the figure's own if empty.
Axis SystemAxis(const FigureOptions& options, const std::vector<std::string>& own);
Axis FunctionAxis(const FigureOptions& options, const std::vector<std::size_t>& own);
Axis RateFactorAxis(const FigureOptions& options, const std::vector<double>& own);
// The options' processes, or artifact and poisson if empty.
Axis ArrivalAxis(const FigureOptions& options);

// Measures a case for a seed. Called from several threads.
using Measure = std::function<Json(const Testbed& testbed, const Json& labels, std::uint64_t seed)>;

// A case for each combination; the first axis changes slowest.
std::vector<Case> CasesOf(const std::shared_ptr<const Testbed>& testbed,
                          const std::vector<Axis>& axes, const Measure& measure);

}  // namespace torpor::sim
