#include <memory>

#include "absl/strings/str_cat.h"
#include "tools/sim/figures/claims.h"
#include "tools/sim/figures/figure_list.h"
#include "tools/sim/figures/measures.h"
#include "tools/sim/figures/scenarios.h"
#include "tools/sim/upper_bound.h"

// Figure 11: share of compliant functions, with one policy at a time replaced.
namespace torpor::sim {
namespace {

// The upper bound as a row, without a simulation.
Json MeasureBound(const Scenario& scenario) {
  const double compliant = CompliantBound(scenario);
  return {{"compliant", compliant},
          {"ratio", compliant / static_cast<double>(scenario.functions.size())}};
}

Json MeasureSeed(const Testbed& testbed, const Json& labels, std::uint64_t seed) {
  const Scenario scenario = Figure11Scenario(testbed, labels, seed);
  return labels["system"] == kBound ? MeasureBound(scenario) : SimulatedMeasures(scenario);
}

// Claims a minimum share of compliant functions under Torpor.
void AddAtLeast(double min, std::size_t functions, Claims& claims) {
  claims.Check(
      absl::StrCat("Torpor at least ", min, " at ", functions, " functions"),
      claims.Of("torpor", {{"functions", functions}}, "ratio"),
      [&](double ratio) { return ratio >= min; }, 3);
}

// Adds the claim that system `above` has the higher ratio.
void AddAbove(const std::string& above, const std::string& below, std::size_t functions,
              Claims& claims) {
  const Json labels = {{"functions", functions}};
  claims.Compare(
      absl::StrCat(above, " above ", below, " at ", functions, " functions"),
      claims.Of(above, labels, "ratio"), claims.Of(below, labels, "ratio"),
      [](double high, double low) { return high > low; }, 3);
}

void AddClaims(Claims& claims) {
  AddAtLeast(0.97, 480, claims);
  AddAtLeast(0.8, 560, claims);
  for (const char* const other : {"fifo", "lru", "block"}) AddAbove("torpor", other, 560, claims);
  AddAbove("torpor", "fifo", 620, claims);
  for (const std::size_t functions : {400, 480}) {
    for (const char* const other : {"torpor", "fifo", "lru", "block"}) {
      AddAbove(other, "random", functions, claims);
    }
  }
}

}  // namespace

Figure MakeFigure11(const FigureOptions& options) {
  Figure figure;
  figure.name = "figure 11";
  figure.number = 11;
  figure.title = "Share of compliant functions under Torpor's policies and without each of them";
  figure.setting =
      "4 GPUs; the 8 models in turn, each function with a row of the rates drawn at random; 31 "
      "minutes; 80 ms (Bert-qa 200 ms) at p98.";
  figure.columns = {Shown("ran"),        Shown("compliant"),  Shown("ratio"),
                    Shown("attainment"), Shown("p98_ms"),     Shown("resident_share"),
                    Shown("host_share"), Shown("peer_share"), Shown("gpu_load")};
  figure.cases = CasesOf(
      MakeTestbed(options, "paper-4gpu"),
      {ArrivalAxis(options), FunctionAxis(options, {320, 400, 480, 560, 620, 640, 720}),
       SystemAxis(options, {"torpor", "torpor-plus", "fifo", "lru", "block", "random", kBound})},
      MeasureSeed);
  figure.paper = {{{{"system", "torpor"}, {"functions", 480}}, "1.00"},
                  {{{"system", "torpor"}, {"functions", 560}}, "> .80"},
                  {{{"system", "random"}, {"functions", 400}}, "the lowest"},
                  {{{"system", "random"}, {"functions", 480}}, "the lowest"},
                  {{{"system", "random"}, {"functions", 560}}, "the lowest"}};
  figure.findings = FindingsOf(AddClaims);
  figure.plot = CompliancePlot("functions", "functions");
  return figure;
}

}  // namespace torpor::sim
