#include <memory>

#include "absl/strings/str_cat.h"
#include "tools/sim/figures/measures.h"

namespace torpor::sim {
namespace {

using workload::ArrivalProcess;

constexpr Duration kLength = std::chrono::minutes(31);
constexpr std::size_t kHeavy = 60;
constexpr std::size_t kLight = 400;

// The heavy ones spread evenly among the others.
std::vector<FunctionSpec> MixedFunctions(const Profiles& profiles) {
  const std::size_t heavy = ModelNamed(profiles, "bert-qa");
  const std::size_t light = ModelNamed(profiles, "densenet-201");
  std::vector<FunctionSpec> functions;
  functions.reserve(kHeavy + kLight);
  for (std::size_t i = 0; i < kHeavy + kLight; ++i) {
    const bool is_heavy = (i + 1) * kHeavy / (kHeavy + kLight) > i * kHeavy / (kHeavy + kLight);
    const std::size_t model = is_heavy ? heavy : light;
    functions.push_back({model, profiles.models[model].deadline, {}});
  }
  return functions;
}

Json Measure(const FigureOptions& options, const NodeModel& node, const std::string& system,
             ArrivalProcess arrivals, std::uint64_t seed) {
  Scenario scenario = BaseScenario(options, node, system, arrivals, seed);
  scenario.functions = MixedFunctions(*options.profiles);
  scenario.rates = workload::DrawRows(options.rates, scenario.functions.size(), seed);
  scenario.length = kLength;
  return MeasuresOf(Simulate(scenario), scenario);
}

std::string Paper(const Json& row) {
  if (row["system"] == "torpor") return "both within their deadlines";
  if (row["system"] == "lru") return "Bert-qa over 200 ms";
  return "";
}

std::vector<Finding> Findings(const std::vector<Json>& rows) {
  std::vector<Finding> findings;
  for (const ArrivalProcess arrivals : {ArrivalProcess::kArtifact, ArrivalProcess::kPoisson}) {
    const std::string name(workload::ArrivalProcessName(arrivals));
    const auto tail = [&](const char* system, const char* model) {
      return MeasureOf(rows, Labels(system, kHeavy + kLight, arrivals),
                       absl::StrCat("models/", model, "/p98_ms"));
    };
    if (const auto bert = tail("lru", "bert-qa")) {
      findings.push_back({absl::StrCat("LRU: Bert-qa's p98 over 200 ms, ", name, " arrivals"),
                          *bert > 200, absl::StrCat(Number(bert, 0), " ms")});
    }
    const auto bert = tail("torpor", "bert-qa");
    const auto dense = tail("torpor", "densenet-201");
    if (bert && dense) {
      findings.push_back(
          {absl::StrCat("Torpor: both models' p98 within their deadlines, ", name, " arrivals"),
           *bert <= 200 && *dense <= 80,
           absl::StrCat("Bert-qa ", Number(bert, 0), " ms, DenseNet-201 ", Number(dense, 0),
                        " ms")});
    }
  }
  return findings;
}

}  // namespace

Figure MakeFigure12(const FigureOptions& options) {
  Figure figure;
  figure.name = "figure 12";
  figure.number = 12;
  figure.title = "Eviction that knows heavy models, and LRU";
  figure.setting =
      "4 GPUs; 60 Bert-qa and 400 DenseNet-201 functions, each with a row of the rates drawn at "
      "random; 31 minutes; Bert-qa 200 ms, DenseNet-201 80 ms at p98.";
  figure.columns = {{"ratio", "ratio", 3},
                    {"Bert-qa p90", "models/bert-qa/p90_ms", 1},
                    {"p98", "models/bert-qa/p98_ms", 1},
                    {"from host", "models/bert-qa/host_share", 3},
                    {"DenseNet-201 p90", "models/densenet-201/p90_ms", 1},
                    {"p98", "models/densenet-201/p98_ms", 1},
                    {"from host", "models/densenet-201/host_share", 3}};
  const auto node = std::make_shared<const NodeModel>(NodeOf(options, "paper-4gpu"));
  for (const ArrivalProcess arrivals : ArrivalsOf(options)) {
    for (const std::string& system : SystemsOf(options, {"torpor", "torpor-plus", "lru"})) {
      figure.cases.push_back({Labels(system, kHeavy + kLight, arrivals), [=](std::uint64_t seed) {
                                return Measure(options, *node, system, arrivals, seed);
                              }});
    }
  }
  figure.paper = Paper;
  figure.findings = Findings;
  figure.plot = FigurePlot{.x_label = "",
                           .x_key = "",
                           .y_label = "ms",
                           .y_key = "",
                           .log_y = false,
                           .bars = {{"Bert-qa p90", "models/bert-qa/p90_ms"},
                                    {"Bert-qa p98", "models/bert-qa/p98_ms"},
                                    {"DenseNet-201 p90", "models/densenet-201/p90_ms"},
                                    {"DenseNet-201 p98", "models/densenet-201/p98_ms"}}};
  return figure;
}

}  // namespace torpor::sim
