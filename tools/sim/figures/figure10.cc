#include <memory>

#include "absl/strings/str_cat.h"
#include "tools/sim/figures/measures.h"

namespace torpor::sim {
namespace {

using workload::ArrivalProcess;

constexpr Duration kLength = std::chrono::minutes(10);

Json Measure(const FigureOptions& options, const NodeModel& node, const Json& labels,
             ArrivalProcess arrivals, std::uint64_t seed) {
  const auto functions = labels["functions"].get<std::size_t>();
  Scenario scenario =
      BaseScenario(options, node, labels["system"].get<std::string>(), arrivals, seed);
  scenario.functions = FunctionsOfModel(*options.profiles, "resnet-152", functions);
  scenario.rates = workload::DrawRows(options.rates, functions, seed);
  scenario.length = kLength;
  return MeasuresOf(Simulate(scenario), scenario);
}

std::string Paper(const Json& row) {
  if (row["functions"] != 160) return "";
  if (row["system"] == "torpor") return "160 run, 160 comply";
  if (row["system"] == "native") return "72 run";
  if (row["system"] == "keep-alive") return "112 run, 7 comply";
  return "";
}

void AddFindings(const std::vector<Json>& rows, ArrivalProcess arrivals,
                 std::vector<Finding>* findings) {
  const std::string name(workload::ArrivalProcessName(arrivals));
  const auto measure = [&](const char* system, const char* key) {
    return MeasureOf(rows, Labels(system, 160, arrivals), key);
  };
  const auto state = [](std::optional<double> ran, std::optional<double> compliant) {
    return absl::StrCat(Number(ran, 1), " run, ", Number(compliant, 1), " comply");
  };
  const auto torpor_ran = measure("torpor", "ran");
  const auto torpor_complies = measure("torpor", "compliant");
  if (torpor_ran) {
    findings->push_back(
        {absl::StrCat("of 160 functions all run and comply under Torpor, ", name, " arrivals"),
         torpor_ran == 160 && torpor_complies == 160, state(torpor_ran, torpor_complies)});
  }
  const auto native_ran = measure("native", "ran");
  if (native_ran) {
    findings->push_back({absl::StrCat("72 run natively, ", name, " arrivals"), native_ran == 72,
                         state(native_ran, measure("native", "compliant"))});
  }
  const auto kept_ran = measure("keep-alive", "ran");
  const auto kept_complies = measure("keep-alive", "compliant");
  if (kept_ran) {
    findings->push_back({absl::StrCat("about 112 run with keep-alive (100 to 125) and few comply "
                                      "(at most 15), ",
                                      name, " arrivals"),
                         *kept_ran >= 100 && *kept_ran <= 125 && *kept_complies <= 15,
                         state(kept_ran, kept_complies)});
  }
}

std::vector<Finding> Findings(const std::vector<Json>& rows) {
  std::vector<Finding> findings;
  AddFindings(rows, ArrivalProcess::kArtifact, &findings);
  AddFindings(rows, ArrivalProcess::kPoisson, &findings);
  return findings;
}

}  // namespace

Figure MakeFigure10(const FigureOptions& options) {
  Figure figure;
  figure.name = "figure 10";
  figure.number = 10;
  figure.title = "Torpor, native containers, and containers that are kept alive (INFless-KA)";
  figure.setting =
      "4 GPUs; ResNet-152, each function with a row of the rates drawn at random; 10 minutes; 80 "
      "ms "
      "at p98. Kept alive for the p99 of the function's own gaps; a request that finds no room for "
      "its container is refused, and counts as late.";
  figure.columns = {{"ran", "ran", 1},       {"compliant", "compliant", 1},
                    {"ratio", "ratio", 3},   {"in time", "attainment", 4},
                    {"p98 ms", "p98_ms", 1}, {"refused", "refused", 0},
                    {"load", "gpu_load", 2}};
  const auto node = std::make_shared<const NodeModel>(NodeOf(options, "paper-4gpu"));
  for (const ArrivalProcess arrivals : ArrivalsOf(options)) {
    for (const std::size_t functions : FunctionsOf(options, {40, 80, 120, 160})) {
      for (const std::string& system :
           SystemsOf(options, {"torpor", "torpor-plus", "native", "keep-alive"})) {
        const Json labels = Labels(system, functions, arrivals);
        figure.cases.push_back({labels, [=](std::uint64_t seed) {
                                  return Measure(options, *node, labels, arrivals, seed);
                                }});
      }
    }
  }
  figure.paper = Paper;
  figure.findings = Findings;
  figure.plot =
      FigurePlot{"functions", "functions", "share of compliant functions", "ratio", false};
  return figure;
}

}  // namespace torpor::sim
