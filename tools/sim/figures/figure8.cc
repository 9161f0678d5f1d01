#include <algorithm>
#include <memory>
#include <optional>

#include "tools/sim/figures/claims.h"
#include "tools/sim/figures/figure_list.h"
#include "tools/sim/figures/measures.h"
#include "tools/sim/figures/scenarios.h"

// Figure 8: many functions on one GPU, each called seldom.
namespace torpor::sim {
namespace {

constexpr Duration kLength = std::chrono::minutes(5);

// Requests a minute of each function, and with how many functions the paper loads a GPU at that.
Axis Points() {
  return {{{"rpm", 80.0}, {"functions", 33}},
          {{"rpm", 60.0}, {"functions", 40}},
          {{"rpm", 40.0}, {"functions", 60}},
          {{"rpm", 20.0}, {"functions", 120}},
          {{"rpm", 10.0}, {"functions", 210}}};
}

// Simulates constant rates and adds the served requests a minute over all functions.
Json MeasureSeed(const Testbed& testbed, const Json& labels, std::uint64_t seed) {
  Scenario scenario = ScenarioOf(testbed, labels, seed);
  scenario.functions = FunctionsOfModel(testbed, labels, "resnet-152");
  scenario.rates = workload::ConstantRates(
      std::vector<double>(scenario.functions.size(), labels["rpm"].get<double>()));
  scenario.length = kLength;
  Json json = SimulatedMeasures(scenario);
  const double served = json["requests"].get<double>() - json["refused"].get<double>() -
                        json["unserved"].get<double>();
  json["throughput_rpm"] = served / (ToSeconds(kLength) / 60);
  return json;
}

void AddClaims(Claims& claims) {
  const Json sparse = Points().back();
  const auto ours = claims.Of("torpor", sparse, "throughput_rpm");
  const auto native = claims.Of("native", sparse, "throughput_rpm");
  if (ours && native) {
    claims.Add("10 times native's throughput at 10 requests a minute", *ours >= 10 * *native,
               Number(*ours / *native, 1) + " times");
  }
  std::optional<double> worst;
  for (const Json& point : Points()) {
    const auto p98 = claims.Of("torpor", point, "p98_ms");
    if (p98) worst = std::max(worst.value_or(0), *p98);
  }
  claims.Check(
      "Torpor's p98 below 50 ms at every rate", worst, [](double ms) { return ms < 50; }, 1,
      " ms at worst");
}

}  // namespace

Figure MakeFigure8(const FigureOptions& options) {
  Figure figure;
  figure.name = "figure 8";
  figure.number = 8;
  figure.title = "Many functions that are called seldom, on one GPU";
  figure.setting = "1 GPU; ResNet-152; as many functions as load the GPU at each rate; 5 minutes.";
  figure.columns = {Shown("ran"),
                    {"requests/min", "throughput_rpm", 0},
                    Shown("p98_ms"),
                    Shown("refused"),
                    Shown("resident_share"),
                    Shown("gpu_load")};
  figure.cases = CasesOf(
      MakeTestbed(options, "paper-1gpu"),
      {ArrivalAxis(options), Points(), SystemAxis(options, {"torpor", "torpor-plus", "native"})},
      MeasureSeed);
  figure.paper = {
      {{{"system", "torpor"}, {"rpm", 10.0}}, "> 10 x native's throughput, tail < 50 ms"},
      {{{"system", "torpor"}}, "tail < 50 ms"}};
  figure.findings = FindingsOf(AddClaims);
  figure.plot = FigurePlot{"requests a minute of each function", "rpm", "p98 (ms)", "p98_ms", true};
  return figure;
}

}  // namespace torpor::sim
