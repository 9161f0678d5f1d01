#include <memory>

#include "absl/strings/str_cat.h"
#include "tools/sim/figures/measures.h"

namespace torpor::sim {
namespace {

using workload::ArrivalProcess;

constexpr Duration kLength = std::chrono::minutes(5);
constexpr const char* kModel = "resnet-152";

struct Point {
  double rpm;
  std::size_t functions;  // with which the paper loads a GPU at that rate
};
constexpr Point kPoints[] = {{80, 33}, {60, 40}, {40, 60}, {20, 120}, {10, 210}};

Scenario ScenarioOf(const FigureOptions& options, const NodeModel& node, const std::string& system,
                    const Point& point, ArrivalProcess arrivals, std::uint64_t seed) {
  Scenario scenario = BaseScenario(options, node, system, arrivals, seed);
  scenario.functions = FunctionsOfModel(*options.profiles, kModel, point.functions);
  scenario.rates = workload::ConstantRates(std::vector<double>(point.functions, point.rpm));
  scenario.length = kLength;
  return scenario;
}

Json Measure(const Scenario& scenario) {
  const Outcome outcome = Simulate(scenario);
  Json json = MeasuresOf(outcome, scenario);
  const double served = json["requests"].get<double>() - json["refused"].get<double>() -
                        json["unserved"].get<double>();
  json["throughput_rpm"] = served / (ToSeconds(scenario.length) / 60);
  return json;
}

Json Labels8(const std::string& system, const Point& point, ArrivalProcess arrivals) {
  Json labels = Labels(system, point.functions, arrivals);
  labels["rpm"] = point.rpm;
  return labels;
}

std::string PaperTail(const Json& row) {
  if (row["system"] != "torpor") return "";
  return row["rpm"] == 10.0 ? "> 10 x native's throughput, tail < 50 ms" : "tail < 50 ms";
}

std::vector<Finding> Findings(const std::vector<Json>& rows) {
  std::vector<Finding> findings;
  for (const ArrivalProcess arrivals : {ArrivalProcess::kArtifact, ArrivalProcess::kPoisson}) {
    const std::string name(workload::ArrivalProcessName(arrivals));
    const Point& sparse = kPoints[std::size(kPoints) - 1];
    const auto ours = MeasureOf(rows, Labels8("torpor", sparse, arrivals), "throughput_rpm");
    const auto native = MeasureOf(rows, Labels8("native", sparse, arrivals), "throughput_rpm");
    if (ours && native) {
      findings.push_back({absl::StrCat("10 times native's throughput at 10 requests a minute, ",
                                       name, " arrivals"),
                          *ours >= 10 * *native,
                          absl::StrCat(Number(*ours / *native, 1), " times")});
    }
    std::optional<double> worst;
    for (const Point& point : kPoints) {
      const auto p98 = MeasureOf(rows, Labels8("torpor", point, arrivals), "p98_ms");
      if (p98) worst = std::max(worst.value_or(0), *p98);
    }
    if (!worst) continue;
    findings.push_back({absl::StrCat("Torpor's p98 below 50 ms at every rate, ", name, " arrivals"),
                        *worst < 50, absl::StrCat(Number(worst, 1), " ms at worst")});
  }
  return findings;
}

}  // namespace

Figure MakeFigure8(const FigureOptions& options) {
  Figure figure;
  figure.name = "figure 8";
  figure.number = 8;
  figure.title = "Many functions that are called seldom, on one GPU";
  figure.setting = "1 GPU; ResNet-152; as many functions as load the GPU at each rate; 5 minutes.";
  figure.columns = {
      {"ran", "ran", 0},         {"requests/min", "throughput_rpm", 0}, {"p98 ms", "p98_ms", 1},
      {"refused", "refused", 0}, {"resident", "resident_share", 3},     {"load", "gpu_load", 2}};
  const auto node = std::make_shared<const NodeModel>(NodeOf(options, "paper-1gpu"));
  for (const ArrivalProcess arrivals : ArrivalsOf(options)) {
    for (const Point& point : kPoints) {
      for (const std::string& system : SystemsOf(options, {"torpor", "torpor-plus", "native"})) {
        figure.cases.push_back({Labels8(system, point, arrivals), [=](std::uint64_t seed) {
                                  return Measure(
                                      ScenarioOf(options, *node, system, point, arrivals, seed));
                                }});
      }
    }
  }
  figure.paper = PaperTail;
  figure.findings = Findings;
  figure.plot = FigurePlot{"requests a minute of each function", "rpm", "p98 (ms)", "p98_ms", true};
  return figure;
}

}  // namespace torpor::sim
