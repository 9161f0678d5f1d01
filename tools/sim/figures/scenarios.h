#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tools/sim/figures/grid.h"

namespace torpor::sim {

// Of the system (a bound's is torpor) and the arrivals that the labels say. Functions, rates and
// length are for the figure to set.
Scenario ScenarioOf(const Testbed& testbed, const Json& labels, std::uint64_t seed);

// Each of the functions with a row of the rates drawn at random, times the label rate_factor where
// there is one.
Scenario TraceScenario(const Testbed& testbed, const Json& labels,
                       std::vector<FunctionSpec> functions, Duration length, std::uint64_t seed);

// As many as the label says, of one model, or of all models in turn.
std::vector<FunctionSpec> FunctionsOfModel(const Testbed& testbed, const Json& labels,
                                           std::string_view model);
std::vector<FunctionSpec> FunctionsOfAllModels(const Testbed& testbed, const Json& labels);

// The model of that name, which the profiles must have.
std::size_t ModelNamed(const Profiles& profiles, std::string_view name);

// Figure 11's, whose labels are of a system, a number of functions and arrivals.
Scenario Figure11Scenario(const Testbed& testbed, const Json& labels, std::uint64_t seed);

}  // namespace torpor::sim
