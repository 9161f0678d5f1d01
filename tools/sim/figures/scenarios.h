#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tools/sim/figures/grid.h"

namespace torpor::sim {

// A scenario with the labels' system (torpor for the bound) and arrivals. The figure sets
// functions, rates and length.
Scenario ScenarioOf(const Testbed& testbed, const Json& labels, std::uint64_t seed);

// A scenario in which every function has a random row of the rates, times the label rate_factor if
// present. The options' length replaces `length`.
Scenario TraceScenario(const Testbed& testbed, const Json& labels,
                       std::vector<FunctionSpec> functions, Duration length, std::uint64_t seed);

// As many as the label says, of one model, or of all models in turn.
std::vector<FunctionSpec> FunctionsOfModel(const Testbed& testbed, const Json& labels,
                                           std::string_view model);
std::vector<FunctionSpec> FunctionsOfAllModels(const Testbed& testbed, const Json& labels);

// Index of the model `name`, which must be in the profiles.
std::size_t ModelNamed(const Profiles& profiles, std::string_view name);

// Figure 11's, whose labels are of a system, a number of functions and arrivals.
Scenario Figure11Scenario(const Testbed& testbed, const Json& labels, std::uint64_t seed);

}  // namespace torpor::sim
