#include <memory>

#include "absl/strings/str_cat.h"
#include "tools/sim/figures/claims.h"
#include "tools/sim/figures/figure_list.h"
#include "tools/sim/figures/measures.h"
#include "tools/sim/figures/scenarios.h"

// Figure 9: functions called often, bound late (Torpor) or early (native).
namespace torpor::sim {
namespace {

// The paper's setting: enough requests to load the four GPUs by half.
constexpr std::size_t kMinutes = 5;
constexpr double kRpm = 200;
constexpr double kShape = 4;  // of each minute's rate of each function
constexpr std::size_t kFunctions = 40;

// Simulates bursty rates and adds the measures by GPU and the variance of load.
Json MeasureSeed(const Testbed& testbed, const Json& labels, std::uint64_t seed) {
  Scenario scenario = ScenarioOf(testbed, labels, seed);
  scenario.functions = FunctionsOfModel(testbed, labels, "resnet-152");
  scenario.rates = workload::GammaRates(std::vector<double>(scenario.functions.size(), kRpm),
                                        kMinutes, kShape, seed);
  scenario.length = std::chrono::minutes(kMinutes);
  const Outcome outcome = Simulate(scenario);
  Json json = MeasuresOf(outcome, scenario);
  json.update(GpuMeasuresOf(outcome));
  json["load_variance"] = LoadVarianceOf(outcome, 0);
  return json;
}

void AddClaims(Claims& claims) {
  const auto measure = [&](const char* system, const char* key) {
    return claims.Of(system, {{"functions", kFunctions}}, key);
  };
  claims.Check(
      "Torpor's p98 at most 40 ms on every GPU", measure("torpor", "worst_gpu_p98_ms"),
      [](double ms) { return ms <= 40; }, 1, " ms");
  claims.Check(
      "native's worst GPU over 1 s", measure("native", "worst_gpu_p98_ms"),
      [](double ms) { return ms > 1000; }, 0, " ms");
  claims.Compare(
      "far less variance of the GPUs' load", measure("torpor", "load_variance"),
      measure("native", "load_variance"),
      [](double ours, double native) { return ours < native / 2; }, 5);
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
                    Shown("load_variance"),
                    Shown("resident_share")};
  const auto testbed = MakeTestbed(options, "paper-4gpu");
  figure.cases = CasesOf(testbed,
                         {ArrivalAxis(options), FunctionAxis(options, {kFunctions}),
                          SystemAxis(options, {"torpor", "torpor-plus", "native"})},
                         MeasureSeed);
  figure.paper = {{{{"system", "torpor"}}, "about 35 ms on every GPU"},
                  {{{"system", "native"}}, "several seconds"}};
  figure.findings = FindingsOf(AddClaims);
  figure.plot =
      FigurePlot{.x_label = "", .x_key = "", .y_label = "p98 (ms)", .y_key = "", .log_y = true};
  for (std::size_t gpu = 0; gpu < testbed->node.gpus.size(); ++gpu) {
    figure.plot->bars.push_back(  // NOLINT: a handful of them
        {absl::StrCat("GPU ", gpu), absl::StrCat("gpu_p98_ms/", gpu)});
  }
  return figure;
}

}  // namespace torpor::sim
