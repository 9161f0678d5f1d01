#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "tools/sim/figures/claims.h"
#include "tools/sim/figures/figure_list.h"
#include "tools/sim/figures/measures.h"
#include "tools/sim/figures/scenarios.h"

// Figure 16: overload with three deadlines, under three queues.
namespace torpor::sim {
namespace {

constexpr Duration kLength = std::chrono::minutes(31);
constexpr std::size_t kFunctions = 560;
constexpr int kDeadlinesMs[] = {60, 70, 80};
// Times the rates. The paper's load is not given.
constexpr double kFactors[] = {1.0, 1.2, 1.3, 1.4, 1.45, 1.5, 1.6};
constexpr double kNamedFactor = 1.45;

// The deadline replaces the profile's for all functions of a row.
Axis DeadlineAxis() {
  Axis axis;
  for (const int ms : kDeadlinesMs) axis.push_back(Json::object({{"deadline_ms", ms}}));  // NOLINT
  return axis;
}

// Simulates ResNet-152 functions with the row's deadline.
Json MeasureSeed(const Testbed& testbed, const Json& labels, std::uint64_t seed) {
  Scenario scenario = TraceScenario(testbed, labels,
                                    FunctionsOfModel(testbed, labels, "resnet-152"), kLength, seed);
  for (FunctionSpec& function : scenario.functions) {
    function.deadline = std::chrono::milliseconds(labels["deadline_ms"].get<int>());
  }
  return SimulatedMeasures(scenario);
}

// Returns the share of compliant functions; nullopt if the row was not simulated.
std::optional<double> RatioOf(const Claims& claims, const char* system, double factor,
                              int deadline_ms) {
  return claims.Of(
      system, {{"functions", kFunctions}, {"rate_factor", factor}, {"deadline_ms", deadline_ms}},
      "ratio");
}

// "1 at 60 ms, 1.2 at 60 ms"; nothing where no such loads were simulated.
std::optional<std::string> LoadsThatFifoWins(const Claims& claims) {
  std::optional<std::string> loads;
  for (const double factor : kFactors) {
    for (const int deadline_ms : kDeadlinesMs) {
      const auto torpor = RatioOf(claims, "torpor", factor, deadline_ms);
      const auto fifo = RatioOf(claims, "fifo", factor, deadline_ms);
      if (!torpor || !fifo) continue;
      if (!loads) loads.emplace();
      if (*fifo <= *torpor) continue;
      absl::StrAppend(&*loads, loads->empty() ? "" : ", ", factor, " at ", deadline_ms, " ms");
    }
  }
  return loads;
}

void AddClaims(Claims& claims) {
  for (const int deadline_ms : kDeadlinesMs) {
    claims.Compare(
        absl::StrCat("above FIFO with deadlines of ", deadline_ms, " ms at ", kNamedFactor,
                     " times the rates"),
        RatioOf(claims, "torpor", kNamedFactor, deadline_ms),
        RatioOf(claims, "fifo", kNamedFactor, deadline_ms),
        [](double torpor, double fifo) { return torpor > fifo; }, 3);
  }
  const auto lost = LoadsThatFifoWins(claims);
  if (!lost) return;
  claims.Add("FIFO wins at no load", lost->empty(),
             absl::StrCat("it wins at ", lost->empty() ? "none" : *lost));
}

}  // namespace

Figure MakeFigure16(const FigureOptions& options) {
  Figure figure;
  figure.name = "figure 16";
  figure.number = 16;
  figure.title = "Queues that know objectives, and first come, first served";
  figure.setting =
      "4 GPUs; 560 ResNet-152 functions, each with a row of the rates drawn at random and "
      "multiplied; 31 minutes; p98 within 60, 70 and 80 ms.";
  figure.columns = {Shown("compliant"), Shown("ratio"), Shown("attainment"), Shown("p98_ms"),
                    Shown("gpu_load")};
  figure.cases = CasesOf(MakeTestbed(options, "paper-4gpu"),
                         {ArrivalAxis(options), FunctionAxis(options, {kFunctions}),
                          RateFactorAxis(options, {std::begin(kFactors), std::end(kFactors)}),
                          DeadlineAxis(), SystemAxis(options, {"torpor", "torpor-plus", "fifo"})},
                         MeasureSeed);
  figure.paper = {{{{"system", "torpor"}}, "above fifo"}};
  figure.findings = FindingsOf(AddClaims);
  figure.plot = CompliancePlot("times the rates", "rate_factor");
  return figure;
}

}  // namespace torpor::sim
