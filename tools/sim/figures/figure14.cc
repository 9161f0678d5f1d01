#include <algorithm>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/sim/figures/claims.h"
#include "tools/sim/figures/figure_list.h"
#include "tools/sim/figures/measures.h"
#include "tools/sim/figures/scenarios.h"

// Figure 14: six nodes, functions spread by name, with letter values of the latencies.
namespace torpor::sim {
namespace {

constexpr Duration kLength = std::chrono::minutes(31);
constexpr std::size_t kNodes = 6;
constexpr std::size_t kMany = 1000;  // of which the paper shows latencies and loads
// The paper does not give the cluster's rates. At the trace's a node has a third of Figure 11's
// load, and all of its functions fit its GPUs.
constexpr double kFactors[] = {1, 4};
// A cluster's own overhead is allowed for.
constexpr Duration kDeadline = std::chrono::milliseconds(150);
constexpr Duration kLateDeadline = std::chrono::milliseconds(250);

// All models in turn, with the cluster's deadlines in place of the profiles'.
std::vector<FunctionSpec> ClusterFunctions(const Testbed& testbed, const Json& labels) {
  std::vector<FunctionSpec> functions = FunctionsOfAllModels(testbed, labels);
  for (FunctionSpec& function : functions) {
    const bool is_bert = testbed.options.profiles->models[function.model].name == "bert-qa";
    function.deadline = is_bert ? kLateDeadline : kDeadline;
  }
  return functions;
}

// Letter values as in the paper's plot.
// Latencies over deadlines at 1/128, 1/64, ... 1/2, ... 63/64, 127/128.
Json LetterValues(const Outcome& outcome, const std::vector<FunctionSpec>& functions) {
  std::vector<std::uint32_t> normalised;  // in millionths
  for (std::size_t i = 0; i < functions.size(); ++i) {
    for (const std::uint32_t us : outcome.functions[i].latencies_us) {
      const double share = us / (ToSeconds(functions[i].deadline) * 1e6);
      normalised.push_back(static_cast<std::uint32_t>(std::min(share * 1e6, 4e9)));
    }
  }
  Json values;
  for (int denominator = 128; denominator >= 2; denominator /= 2) {
    values[absl::StrCat("1/", denominator)] = Percentile(normalised, 1.0 / denominator) / 1e6;
  }
  for (int denominator = 4; denominator <= 128; denominator *= 2) {
    values[absl::StrCat(denominator - 1, "/", denominator)] =
        Percentile(normalised, 1 - 1.0 / denominator) / 1e6;
  }
  return values;
}

// Simulates the cluster and adds letter values and the variance of the GPUs' load by node and on
// average.
Json MeasureSeed(const Testbed& testbed, const Json& labels, std::uint64_t seed) {
  Scenario scenario =
      TraceScenario(testbed, labels, ClusterFunctions(testbed, labels), kLength, seed);
  scenario.nodes = kNodes;
  const Outcome outcome = Simulate(scenario);
  Json json = MeasuresOf(outcome, scenario);
  json["over_deadline"] = LetterValues(outcome, scenario.functions);
  double sum = 0;
  for (std::size_t node = 0; node < kNodes; ++node) {
    const double variance = LoadVarianceOf(outcome, node);
    json["load_variances"].push_back(variance);
    sum += variance;
  }
  json["load_variance"] = sum / static_cast<double>(kNodes);
  return json;
}

// The keys of Json pointers have ~1 for a slash.
constexpr const char* kTail = "over_deadline/127~1128";

// The paper's claims, at a load of `factor` times the rates.
void AddClaimsAt(double factor, Claims& claims) {
  const std::string where = absl::StrCat(" at ", factor, " times the rates");
  const auto measure = [&](const char* system, const char* key) {
    return claims.Of(system, {{"functions", kMany}, {"rate_factor", factor}}, key);
  };
  claims.Check(
      "all of 1000 functions comply under Torpor" + where, measure("torpor", "ratio"),
      [](double ratio) { return ratio == 1; }, 3);
  claims.Check(
      "Torpor's latencies over deadlines below 1 at 127/128" + where, measure("torpor", kTail),
      [](double tail) { return tail < 1; }, 2);
  claims.Check(
      "SimpleSwap's over 4" + where, measure("simple-swap", kTail),
      [](double tail) { return tail > 4; }, 2);
  claims.Check(
      "NonSwap's over 7" + where, measure("non-swap", kTail), [](double tail) { return tail > 7; },
      2);
  claims.Compare(
      "far less variance of the GPUs' load than NonSwap" + where,
      measure("torpor", "load_variance"), measure("non-swap", "load_variance"),
      [](double ours, double theirs) { return ours < theirs / 2; }, 5);
}

void AddClaims(Claims& claims) {
  for (const double factor : kFactors) AddClaimsAt(factor, claims);
  claims.Check(
      "Native holds 500 functions at most",
      claims.Of("native", {{"functions", kMany}, {"rate_factor", kFactors[0]}}, "ran"),
      [](double ran) { return ran <= 500; }, 0);
}

}  // namespace

Figure MakeFigure14(const FigureOptions& options) {
  Figure figure;
  figure.name = "figure 14";
  figure.number = 14;
  figure.title = "A cluster of six nodes";
  figure.setting =
      "6 nodes of 4 GPUs; the 8 models in turn, each function on one node and with a row of the "
      "rates drawn at random; 31 minutes; 150 ms (Bert-qa 250 ms) at p98.";
  figure.columns = {Shown("ran"),
                    Shown("compliant"),
                    Shown("ratio"),
                    {"1/2", "over_deadline/1~12", 3},
                    {"63/64", "over_deadline/63~164", 3},
                    {"127/128", kTail, 3},
                    Shown("load_variance"),
                    Shown("gpu_load")};
  figure.cases = CasesOf(
      MakeTestbed(options, "paper-4gpu"),
      {ArrivalAxis(options), RateFactorAxis(options, {std::begin(kFactors), std::end(kFactors)}),
       FunctionAxis(options, {200, 400, 500, 600, 800, 1000, 1200}),
       SystemAxis(options, {"torpor", "torpor-plus", "native", "non-swap", "simple-swap"})},
      MeasureSeed);
  figure.paper = {{{{"system", "torpor"}, {"functions", kMany}}, "1.00; 127/128 below 1"},
                  {{{"system", "torpor"}}, "1.00"},
                  {{{"system", "simple-swap"}, {"functions", kMany}}, "127/128 over 4"},
                  {{{"system", "non-swap"}, {"functions", kMany}}, "127/128 over 7"},
                  {{{"system", "native"}}, "up to 500 functions"}};
  figure.findings = FindingsOf(AddClaims);
  figure.plot = CompliancePlot("functions", "functions");
  return figure;
}

}  // namespace torpor::sim
