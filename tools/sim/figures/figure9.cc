#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "tools/sim/figures/measures.h"

namespace torpor::sim {
namespace {

using workload::ArrivalProcess;

constexpr std::size_t kMinutes = 5;
constexpr Duration kLength = std::chrono::minutes(kMinutes);
constexpr double kRpm = 200;
constexpr double kShape = 4;  // of each minute's rate of each function
constexpr std::size_t kFunctions = 40;

double Variance(const Json& values) {
  double sum = 0;
  double squares = 0;
  for (const Json& value : values) {
    sum += value.get<double>();
    squares += value.get<double>() * value.get<double>();
  }
  const auto count = static_cast<double>(values.size());
  return squares / count - sum / count * (sum / count);
}

Json Measure(const FigureOptions& options, const NodeModel& node, const Json& labels,
             ArrivalProcess arrivals, std::uint64_t seed) {
  const auto functions = labels["functions"].get<std::size_t>();
  Scenario scenario =
      BaseScenario(options, node, labels["system"].get<std::string>(), arrivals, seed);
  scenario.functions = FunctionsOfModel(*options.profiles, "resnet-152", functions);
  scenario.rates =
      workload::GammaRates(std::vector<double>(functions, kRpm), kMinutes, kShape, seed);
  scenario.length = kLength;
  const Outcome outcome = Simulate(scenario);
  Json json = MeasuresOf(outcome, scenario);
  json.update(GpuMeasuresOf(outcome));
  const double most = *std::max_element(json["gpu_loads"].begin(), json["gpu_loads"].end());
  Json normalised = json["gpu_loads"];
  for (Json& load : normalised) load = load.get<double>() / most;
  json["load_variance"] = Variance(normalised);
  return json;
}

std::string Paper(const Json& row) {
  if (row["system"] == "torpor") return "about 35 ms on every GPU";
  if (row["system"] == "native") return "several seconds";
  return "";
}

std::vector<Finding> Findings(const std::vector<Json>& rows) {
  std::vector<Finding> findings;
  for (const ArrivalProcess arrivals : {ArrivalProcess::kArtifact, ArrivalProcess::kPoisson}) {
    const std::string name(workload::ArrivalProcessName(arrivals));
    const Json torpor = Labels("torpor", kFunctions, arrivals);
    const Json native = Labels("native", kFunctions, arrivals);
    const auto ours = MeasureOf(rows, torpor, "worst_gpu_p98_ms");
    const auto theirs = MeasureOf(rows, native, "worst_gpu_p98_ms");
    if (ours) {
      findings.push_back(
          {absl::StrCat("Torpor's p98 at most 40 ms on every GPU, ", name, " arrivals"),
           *ours <= 40, absl::StrCat(Number(ours, 1), " ms")});
    }
    if (theirs) {
      findings.push_back({absl::StrCat("native's worst GPU over 1 s, ", name, " arrivals"),
                          *theirs > 1000, absl::StrCat(Number(theirs, 0), " ms")});
    }
    const auto our_variance = MeasureOf(rows, torpor, "load_variance");
    const auto their_variance = MeasureOf(rows, native, "load_variance");
    if (our_variance && their_variance) {
      findings.push_back(
          {absl::StrCat("far less variance of the GPUs' load, ", name, " arrivals"),
           *our_variance < *their_variance / 2,
           absl::StrCat(Number(our_variance, 5), " against ", Number(their_variance, 5))});
    }
  }
  return findings;
}

}  // namespace

Figure MakeFigure9(const FigureOptions& options) {
  Figure figure;
  figure.name = "figure 9";
  figure.number = 9;
  figure.title = "Functions that are called often, on all GPUs or each on its own";
  figure.setting =
      "4 GPUs; 40 ResNet-152 functions of 200 requests a minute, drawn anew each minute from a "
      "Gamma distribution of shape 4; 5 minutes; native binds function i to GPU i modulo 4.";
  figure.columns = {{"p98 ms of each GPU", "gpu_p98_ms", 0},
                    {"worst", "worst_gpu_p98_ms", 1},
                    {"load of each GPU", "gpu_loads", 2},
                    {"load variance", "load_variance", 5},
                    {"resident", "resident_share", 3}};
  const auto node = std::make_shared<const NodeModel>(NodeOf(options, "paper-4gpu"));
  for (const ArrivalProcess arrivals : ArrivalsOf(options)) {
    for (const std::size_t functions : FunctionsOf(options, {kFunctions})) {
      for (const std::string& system : SystemsOf(options, {"torpor", "torpor-plus", "native"})) {
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
      FigurePlot{.x_label = "", .x_key = "", .y_label = "p98 (ms)", .y_key = "", .log_y = true};
  for (std::size_t gpu = 0; gpu < node->gpus.size(); ++gpu) {
    figure.plot->bars.push_back(  // NOLINT: a handful of them
        {absl::StrCat("GPU ", gpu), absl::StrCat("gpu_p98_ms/", gpu)});
  }
  return figure;
}

}  // namespace torpor::sim
