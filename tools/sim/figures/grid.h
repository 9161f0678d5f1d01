#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/sim/figures/figure.h"

namespace torpor::sim {

// What a figure's cases are simulated on.
struct Testbed {
  FigureOptions options;
  NodeModel node;
};

// The options' node, or else the shipped one of that name.
std::shared_ptr<const Testbed> MakeTestbed(const FigureOptions& options, const std::string& node);

// Something that a figure varies: the labels of each of its values.
using Axis = std::vector<Json>;

// The options' lists, or else the figure's own.
Axis SystemAxis(const FigureOptions& options, const std::vector<std::string>& own);
Axis FunctionAxis(const FigureOptions& options, const std::vector<std::size_t>& own);
Axis RateFactorAxis(const FigureOptions& options, const std::vector<double>& own);
// The options' processes, or else artifact and poisson.
Axis ArrivalAxis(const FigureOptions& options);

// The measures of one case and seed. Called from several threads.
using Measure = std::function<Json(const Testbed& testbed, const Json& labels, std::uint64_t seed)>;

// A case for each combination, the first axis changing slowest.
std::vector<Case> CasesOf(const std::shared_ptr<const Testbed>& testbed,
                          const std::vector<Axis>& axes, const Measure& measure);

}  // namespace torpor::sim
