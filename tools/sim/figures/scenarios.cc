#include "tools/sim/figures/scenarios.h"

#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"

namespace torpor::sim {
namespace {

constexpr Duration kFigure11Length = std::chrono::minutes(31);

std::size_t CountOf(const Json& labels) { return labels.at("functions").get<std::size_t>(); }

}  // namespace

// The labels were made from known systems and processes, so both are found.
Scenario ScenarioOf(const Testbed& testbed, const Json& labels, std::uint64_t seed) {
  Scenario scenario;
  scenario.profiles = testbed.options.profiles;
  scenario.node = &testbed.node;
  const auto name = labels.at("system").get<std::string>();
  const auto system = SystemNamed(name == kBound ? "torpor" : name);
  TORPOR_CHECK(system.ok());
  scenario.system = *system;
  scenario.system.constants = testbed.options.constants;
  scenario.arrivals.process =
      *workload::ParseArrivalProcess(labels.at("arrivals").get<std::string>());
  scenario.seed = seed;
  return scenario;
}

Scenario TraceScenario(const Testbed& testbed, const Json& labels,
                       std::vector<FunctionSpec> functions, Duration length, std::uint64_t seed) {
  Scenario scenario = ScenarioOf(testbed, labels, seed);
  scenario.rates = workload::DrawRows(testbed.options.rates, functions.size(), seed);
  if (labels.contains("rate_factor")) scenario.rates.Scale(labels["rate_factor"].get<double>());
  scenario.functions = std::move(functions);
  scenario.length = testbed.options.length.value_or(length);
  return scenario;
}

std::vector<FunctionSpec> FunctionsOfModel(const Testbed& testbed, const Json& labels,
                                           std::string_view model) {
  const Profiles& profiles = *testbed.options.profiles;
  return FunctionsInTurn(profiles, {ModelNamed(profiles, model)}, CountOf(labels));
}

std::vector<FunctionSpec> FunctionsOfAllModels(const Testbed& testbed, const Json& labels) {
  const Profiles& profiles = *testbed.options.profiles;
  std::vector<std::size_t> models(profiles.models.size());
  std::iota(models.begin(), models.end(), 0);
  return FunctionsInTurn(profiles, models, CountOf(labels));
}

std::size_t ModelNamed(const Profiles& profiles, std::string_view name) {
  const auto model = FindModel(profiles, name);
  TORPOR_CHECK(model.ok());
  return *model;
}

Scenario Figure11Scenario(const Testbed& testbed, const Json& labels, std::uint64_t seed) {
  return TraceScenario(testbed, labels, FunctionsOfAllModels(testbed, labels), kFigure11Length,
                       seed);
}

}  // namespace torpor::sim
