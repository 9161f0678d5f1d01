#include "tools/sim/figures/free_run.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/sim/figures/figure_list.h"
#include "tools/sim/figures/measures.h"
#include "tools/sim/figures/scenarios.h"

namespace torpor::sim {
namespace {

// Returns indices in the profiles; all models for an empty list, NotFound for an unknown name.
absl::StatusOr<std::vector<std::size_t>> ModelsOf(const Profiles& profiles,
                                                  const std::vector<std::string>& names) {
  std::vector<std::size_t> models;
  models.reserve(profiles.models.size());
  if (names.empty()) {
    for (std::size_t i = 0; i < profiles.models.size(); ++i) models.push_back(i);
  }
  for (const std::string& name : names) {
    TORPOR_ASSIGN_OR_RETURN(const std::size_t model, FindModel(profiles, name));
    models.push_back(model);  // NOLINT: a handful of them
  }
  return models;
}

// Simulates one seed with the labels' system, functions, rate factor and arrivals.
Json MeasureSeed(const FreeRunOptions& run, const std::vector<std::size_t>& models,
                 const Testbed& testbed, const Json& labels, std::uint64_t seed) {
  Scenario scenario = TraceScenario(
      testbed, labels,
      FunctionsInTurn(*testbed.options.profiles, models, labels["functions"].get<std::size_t>()),
      Duration(std::llround(run.minutes * 60e9)), seed);
  scenario.nodes = run.nodes;
  scenario.routing = run.routing == "least" ? Routing::kLeastOutstanding : Routing::kByFunction;
  const Outcome outcome = Simulate(scenario);
  Json json = MeasuresOf(outcome, scenario);
  json["scheduler_events"] = outcome.scheduler_events;
  json["hash"] = absl::StrCat(absl::Hex(outcome.hash, absl::kZeroPad16));
  return json;
}

}  // namespace

absl::StatusOr<Figure> MakeFreeRun(const FigureOptions& options, const FreeRunOptions& run) {
  TORPOR_RETURN_IF_ERROR(CheckNoBound(options));
  TORPOR_ASSIGN_OR_RETURN(const std::vector<std::size_t> models,
                          ModelsOf(*options.profiles, run.models));
  Figure figure;
  figure.name = "run";
  figure.title =
      absl::StrCat(run.nodes, run.nodes == 1 ? " node, " : " nodes, ", run.minutes, " minutes");
  figure.columns = {Shown("ran"),
                    Shown("compliant"),
                    Shown("ratio"),
                    Shown("attainment"),
                    Shown("p98_ms"),
                    Shown("refused"),
                    Shown("resident_share"),
                    Shown("host_share"),
                    Shown("peer_share"),
                    Shown("gpu_load"),
                    {"hash (first seed)", "hash", 0}};
  figure.cases =
      CasesOf(MakeTestbed(options, "paper-4gpu"),
              {ArrivalAxis(options), FunctionAxis(options, {480}), RateFactorAxis(options, {1}),
               SystemAxis(options, {"torpor", "torpor-plus"})},
              [run, models](const Testbed& testbed, const Json& labels, std::uint64_t seed) {
                return MeasureSeed(run, models, testbed, labels, seed);
              });
  figure.plot = CompliancePlot("functions", "functions");
  return figure;
}

}  // namespace torpor::sim
