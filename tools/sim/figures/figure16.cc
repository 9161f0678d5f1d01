#include <memory>

#include "absl/strings/str_cat.h"
#include "tools/sim/figures/measures.h"

namespace torpor::sim {
namespace {

using workload::ArrivalProcess;

constexpr Duration kLength = std::chrono::minutes(31);
constexpr std::size_t kFunctions = 560;
constexpr int kDeadlinesMs[] = {60, 70, 80};
// Times the rates. The paper's load is not given.
const std::vector<double>& Factors() {
  static const auto* const factors = new std::vector<double>{1.0, 1.2, 1.3, 1.4, 1.45, 1.5, 1.6};
  return *factors;
}
constexpr double kNamedFactor = 1.45;

Json LabelsOf(const std::string& system, std::size_t functions, ArrivalProcess arrivals,
              double factor, int deadline_ms) {
  Json labels = Labels(system, functions, arrivals);
  labels["rate_factor"] = factor;
  labels["deadline_ms"] = deadline_ms;
  return labels;
}

Json Measure(const FigureOptions& options, const NodeModel& node, const Json& labels,
             ArrivalProcess arrivals, std::uint64_t seed) {
  const auto functions = labels["functions"].get<std::size_t>();
  Scenario scenario =
      BaseScenario(options, node, labels["system"].get<std::string>(), arrivals, seed);
  scenario.functions = FunctionsOfModel(*options.profiles, "resnet-152", functions);
  for (FunctionSpec& function : scenario.functions) {
    function.deadline = std::chrono::milliseconds(labels["deadline_ms"].get<int>());
  }
  scenario.rates = workload::DrawRows(options.rates, functions, seed);
  scenario.rates.Scale(labels["rate_factor"].get<double>());
  scenario.length = kLength;
  return MeasuresOf(Simulate(scenario), scenario);
}

std::string Paper(const Json& row) { return row["system"] == "torpor" ? "above fifo" : ""; }

// "1 at 60 ms, 1.2 at 60 ms": where `is_so` of Torpor's ratio and FIFO's.
template <typename IsSo>
std::string Loads(const std::vector<Json>& rows, ArrivalProcess arrivals, const IsSo& is_so) {
  std::string loads;
  for (const double factor : Factors()) {
    for (const int deadline_ms : kDeadlinesMs) {
      const auto ratio = [&](const char* system) {
        return MeasureOf(rows, LabelsOf(system, kFunctions, arrivals, factor, deadline_ms),
                         "ratio");
      };
      const auto torpor = ratio("torpor");
      const auto fifo = ratio("fifo");
      if (!torpor || !fifo || !is_so(*torpor, *fifo)) continue;
      absl::StrAppend(&loads, loads.empty() ? "" : ", ", factor, " at ", deadline_ms, " ms");
    }
  }
  return loads.empty() ? "none" : loads;
}

std::vector<Finding> Findings(const std::vector<Json>& rows) {
  std::vector<Finding> findings;
  for (const ArrivalProcess arrivals : {ArrivalProcess::kArtifact, ArrivalProcess::kPoisson}) {
    const std::string name(workload::ArrivalProcessName(arrivals));
    for (const int deadline_ms : kDeadlinesMs) {
      const auto ratio = [&](const char* system) {
        return MeasureOf(rows, LabelsOf(system, kFunctions, arrivals, kNamedFactor, deadline_ms),
                         "ratio");
      };
      const auto torpor = ratio("torpor");
      const auto fifo = ratio("fifo");
      if (!torpor || !fifo) continue;
      findings.push_back({absl::StrCat("above FIFO with deadlines of ", deadline_ms, " ms at ",
                                       kNamedFactor, " times the rates, ", name, " arrivals"),
                          *torpor > *fifo,
                          absl::StrCat(Number(torpor, 3), " against ", Number(fifo, 3))});
    }
    const std::string lost =
        Loads(rows, arrivals, [](double torpor, double fifo) { return fifo > torpor; });
    findings.push_back({absl::StrCat("FIFO wins at no load, ", name, " arrivals"), lost == "none",
                        absl::StrCat("it wins at ", lost)});
  }
  return findings;
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
  figure.columns = {{"compliant", "compliant", 1},
                    {"ratio", "ratio", 3},
                    {"in time", "attainment", 4},
                    {"p98 ms", "p98_ms", 1},
                    {"load", "gpu_load", 2}};
  const auto node = std::make_shared<const NodeModel>(NodeOf(options, "paper-4gpu"));
  for (const ArrivalProcess arrivals : ArrivalsOf(options)) {
    for (const std::size_t functions : FunctionsOf(options, {kFunctions})) {
      for (const double factor : RateFactorsOf(options, Factors())) {
        for (const int deadline_ms : kDeadlinesMs) {
          for (const std::string& system : SystemsOf(options, {"torpor", "torpor-plus", "fifo"})) {
            const Json labels = LabelsOf(system, functions, arrivals, factor, deadline_ms);
            figure.cases.push_back({labels, [=](std::uint64_t seed) {
                                      return Measure(options, *node, labels, arrivals, seed);
                                    }});
          }
        }
      }
    }
  }
  figure.paper = Paper;
  figure.findings = Findings;
  figure.plot =
      FigurePlot{"times the rates", "rate_factor", "share of compliant functions", "ratio", false};
  return figure;
}

}  // namespace torpor::sim
