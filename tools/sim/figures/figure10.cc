#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "tools/sim/figures/claims.h"
#include "tools/sim/figures/figure_list.h"
#include "tools/sim/figures/measures.h"
#include "tools/sim/figures/scenarios.h"

// Figure 10: how many functions of a model a node holds, with containers or without.
namespace torpor::sim {
namespace {

constexpr Duration kLength = std::chrono::minutes(10);

Json MeasureSeed(const Testbed& testbed, const Json& labels, std::uint64_t seed) {
  return SimulatedMeasures(TraceScenario(
      testbed, labels, FunctionsOfModel(testbed, labels, "resnet-152"), kLength, seed));
}

// Checks how many of 160 functions run and comply.
template <typename Holds>
void AddClaim(const std::string& claim, const char* system, const Holds& holds, Claims& claims) {
  const Json labels = {{"functions", 160}};
  const auto ran = claims.Of(system, labels, "ran");
  const auto compliant = claims.Of(system, labels, "compliant");
  if (!ran || !compliant) return;
  claims.Add(claim, holds(*ran, *compliant),
             absl::StrCat(Number(ran, 1), " run, ", Number(compliant, 1), " comply"));
}

// Claims about 160 functions, of which the paper gives numbers.
void AddClaims(Claims& claims) {
  AddClaim(
      "of 160 functions all run and comply under Torpor", "torpor",
      [](double ran, double compliant) { return ran == 160 && compliant == 160; }, claims);
  AddClaim(
      "72 run natively", "native", [](double ran, double) { return ran == 72; }, claims);
  AddClaim(
      "about 112 run with keep-alive (100 to 125) and few comply (at most 15)", "keep-alive",
      [](double ran, double compliant) { return ran >= 100 && ran <= 125 && compliant <= 15; },
      claims);
}

}  // namespace

Figure MakeFigure10(const FigureOptions& options) {
  Figure figure;
  figure.name = "figure 10";
  figure.number = 10;
  figure.title = "Torpor, native containers, and containers that are kept alive (INFless-KA)";
  figure.setting =
      "4 GPUs; ResNet-152, each function with a row of the rates drawn at random; 10 minutes; "
      "80 ms at p98. Kept alive for the p99 of the function's own gaps; a request that finds no "
      "room for its container is refused, and counts as late.";
  figure.columns = {Shown("ran"),    Shown("compliant"), Shown("ratio"),   Shown("attainment"),
                    Shown("p98_ms"), Shown("refused"),   Shown("gpu_load")};
  figure.cases = CasesOf(MakeTestbed(options, "paper-4gpu"),
                         {ArrivalAxis(options), FunctionAxis(options, {40, 80, 120, 160}),
                          SystemAxis(options, {"torpor", "torpor-plus", "native", "keep-alive"})},
                         MeasureSeed);
  figure.paper = {{{{"system", "torpor"}, {"functions", 160}}, "160 run, 160 comply"},
                  {{{"system", "native"}, {"functions", 160}}, "72 run"},
                  {{{"system", "keep-alive"}, {"functions", 160}}, "112 run, 7 comply"}};
  figure.findings = FindingsOf(AddClaims);
  figure.plot = CompliancePlot("functions", "functions");
  return figure;
}

}  // namespace torpor::sim
