#include "tools/sim/figures/free_run.h"

#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/sim/figures/measures.h"

namespace torpor::sim {
namespace {

using workload::ArrivalProcess;

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

Json Measure(Scenario scenario, const FigureOptions& options, const FreeRunOptions& run,
             const std::vector<std::size_t>& models, const Json& labels) {
  const auto functions = labels["functions"].get<std::size_t>();
  scenario.nodes = run.nodes;
  scenario.routing = run.routing == "least" ? Routing::kLeastOutstanding : Routing::kByFunction;
  scenario.functions = FunctionsInTurn(*options.profiles, models, functions);
  scenario.rates = workload::DrawRows(options.rates, functions, scenario.seed);
  scenario.rates.Scale(labels["rate_factor"].get<double>());
  scenario.length = Duration(std::llround(run.minutes * 60e9));
  const Outcome outcome = Simulate(scenario);
  Json json = MeasuresOf(outcome, scenario);
  json["scheduler_events"] = outcome.scheduler_events;
  json["hash"] = absl::StrCat(absl::Hex(outcome.hash, absl::kZeroPad16));
  return json;
}

}  // namespace

absl::StatusOr<Figure> MakeFreeRun(const FigureOptions& options, const FreeRunOptions& run) {
  TORPOR_ASSIGN_OR_RETURN(const std::vector<std::size_t> models,
                          ModelsOf(*options.profiles, run.models));
  Figure figure;
  figure.name = "run";
  figure.title =
      absl::StrCat(run.nodes, run.nodes == 1 ? " node, " : " nodes, ", run.minutes, " minutes");
  figure.columns = {{"ran", "ran", 1},
                    {"compliant", "compliant", 1},
                    {"ratio", "ratio", 3},
                    {"in time", "attainment", 4},
                    {"p98 ms", "p98_ms", 1},
                    {"refused", "refused", 0},
                    {"resident", "resident_share", 3},
                    {"host", "host_share", 3},
                    {"peer", "peer_share", 3},
                    {"load", "gpu_load", 2},
                    {"hash (first seed)", "hash", 0}};
  const auto node = std::make_shared<const NodeModel>(NodeOf(options, "paper-4gpu"));
  for (const ArrivalProcess arrivals : ArrivalsOf(options)) {
    for (const std::size_t functions : FunctionsOf(options, {480})) {
      for (const double factor : RateFactorsOf(options, {1})) {
        for (const std::string& system : SystemsOf(options, {"torpor", "torpor-plus"})) {
          Json labels = Labels(system, functions, arrivals);
          labels["rate_factor"] = factor;
          figure.cases.push_back({labels, [=](std::uint64_t seed) {
                                    return Measure(
                                        BaseScenario(options, *node, system, arrivals, seed),
                                        options, run, models, labels);
                                  }});
        }
      }
    }
  }
  figure.plot =
      FigurePlot{"functions", "functions", "share of compliant functions", "ratio", false};
  return figure;
}

}  // namespace torpor::sim
