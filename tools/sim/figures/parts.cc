#include <algorithm>

#include "tools/sim/figures/figure_list.h"
#include "tools/sim/figures/measures.h"
#include "tools/sim/figures/scenarios.h"

// torpor-plus with one part at a time as torpor has it.
namespace torpor::sim {
namespace {

std::vector<std::string> PartSystems() {
  std::vector<std::string> systems = {"torpor-plus"};
  for (const System& system : Systems()) {
    if (system.without) systems.push_back(system.name);  // NOLINT: a handful of them
  }
  systems.emplace_back("torpor");
  return systems;
}

// Whether one model pays for the service of the others.
Json MeasureSeed(const Testbed& testbed, const Json& labels, std::uint64_t seed) {
  Json json = SimulatedMeasures(Figure11Scenario(testbed, labels, seed));
  double min_ratio = 1;
  for (const Json& model : json["models"])
    min_ratio = std::min(min_ratio, model["ratio"].get<double>());
  json["least_model_ratio"] = min_ratio;
  return json;
}

}  // namespace

// The variants are systems of their own, "torpor-plus without PART".
Figure MakeParts(const FigureOptions& options) {
  Figure figure;
  figure.name = "figure parts";
  figure.title = "What each part of torpor-plus brings";
  figure.setting =
      "As figure 11, with one part of torpor-plus at a time as torpor has it; the least ratio is "
      "of "
      "the model whose functions comply least.";
  figure.columns = {Shown("compliant"),  Shown("ratio"),      {"least", "least_model_ratio", 3},
                    Shown("attainment"), Shown("p98_ms"),     Shown("resident_share"),
                    Shown("host_share"), Shown("peer_share"), Shown("gpu_load")};
  figure.cases = CasesOf(MakeTestbed(options, "paper-4gpu"),
                         {ArrivalAxis(options), FunctionAxis(options, {560, 640, 720}),
                          SystemAxis(options, PartSystems())},
                         MeasureSeed);
  figure.plot = CompliancePlot("functions", "functions");
  return figure;
}

}  // namespace torpor::sim
