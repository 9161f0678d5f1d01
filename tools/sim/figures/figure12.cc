#include <memory>

#include "absl/strings/str_cat.h"
#include "tools/sim/figures/claims.h"
#include "tools/sim/figures/figure_list.h"
#include "tools/sim/figures/measures.h"
#include "tools/sim/figures/scenarios.h"

// Figure 12: a mix of heavy and light models under two evictions.
namespace torpor::sim {
namespace {

constexpr Duration kLength = std::chrono::minutes(31);
constexpr std::size_t kHeavy = 60;
constexpr std::size_t kLight = 400;

// Heavy functions spread evenly among light ones.
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

Json MeasureSeed(const Testbed& testbed, const Json& labels, std::uint64_t seed) {
  return SimulatedMeasures(
      TraceScenario(testbed, labels, MixedFunctions(*testbed.options.profiles), kLength, seed));
}

// The paper shows both tails under both evictions; the deadlines are the profiles'.
void AddClaims(Claims& claims) {
  const auto tail = [&](const char* system, const char* model) {
    return claims.Of(system, Json::object(), absl::StrCat("models/", model, "/p98_ms"));
  };
  claims.Check(
      "LRU: Bert-qa's p98 over 200 ms", tail("lru", "bert-qa"), [](double ms) { return ms > 200; },
      0, " ms");
  const auto bert = tail("torpor", "bert-qa");
  const auto dense = tail("torpor", "densenet-201");
  if (!bert || !dense) return;
  claims.Add(
      "Torpor: both models' p98 within their deadlines", *bert <= 200 && *dense <= 80,
      absl::StrCat("Bert-qa ", Number(bert, 0), " ms, DenseNet-201 ", Number(dense, 0), " ms"));
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
  figure.columns = {Shown("ratio"),
                    {"Bert-qa p90", "models/bert-qa/p90_ms", 1},
                    {"p98", "models/bert-qa/p98_ms", 1},
                    {"from host", "models/bert-qa/host_share", 3},
                    {"DenseNet-201 p90", "models/densenet-201/p90_ms", 1},
                    {"p98", "models/densenet-201/p98_ms", 1},
                    {"from host", "models/densenet-201/host_share", 3}};
  const Axis size = {Json::object({{"functions", kHeavy + kLight}})};
  figure.cases =
      CasesOf(MakeTestbed(options, "paper-4gpu"),
              {ArrivalAxis(options), size, SystemAxis(options, {"torpor", "torpor-plus", "lru"})},
              MeasureSeed);
  figure.paper = {{{{"system", "torpor"}}, "both within their deadlines"},
                  {{{"system", "lru"}}, "Bert-qa over 200 ms"}};
  figure.findings = FindingsOf(AddClaims);
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
