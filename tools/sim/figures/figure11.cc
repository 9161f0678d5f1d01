#include <memory>

#include "absl/strings/str_cat.h"
#include "tools/sim/figures/measures.h"
#include "tools/sim/upper_bound.h"

namespace torpor::sim {
namespace {

using workload::ArrivalProcess;

constexpr Duration kLength = std::chrono::minutes(31);

std::vector<std::size_t> AllModels(const Profiles& profiles) {
  std::vector<std::size_t> models(profiles.models.size());
  for (std::size_t i = 0; i < models.size(); ++i) models[i] = i;
  return models;
}

// No system: what none can exceed.
constexpr const char* kBound = "bound";

Json MeasureBound(const Scenario& scenario) {
  const double compliant = CompliantBound(scenario);
  return {{"compliant", compliant},
          {"ratio", compliant / static_cast<double>(scenario.functions.size())}};
}

Json Measure(const FigureOptions& options, const NodeModel& node, const Json& labels,
             ArrivalProcess arrivals, std::uint64_t seed) {
  const auto functions = labels["functions"].get<std::size_t>();
  const auto system = labels["system"].get<std::string>();
  Scenario scenario =
      BaseScenario(options, node, system == kBound ? "torpor" : system, arrivals, seed);
  scenario.functions = FunctionsInTurn(*options.profiles, AllModels(*options.profiles), functions);
  scenario.rates = workload::DrawRows(options.rates, functions, seed);
  scenario.length = kLength;
  if (system == kBound) return MeasureBound(scenario);
  return MeasuresOf(Simulate(scenario), scenario);
}

std::string PaperRatio(const Json& row) {
  const auto functions = row["functions"].get<std::size_t>();
  const auto system = row["system"].get<std::string>();
  if (system == "torpor" && functions == 480) return "1.00";
  if (system == "torpor" && functions == 560) return "> .80";
  if (system == "random" && functions >= 400) return "the lowest";
  return "";
}

class Finder {
 public:
  Finder(const std::vector<Json>& rows, ArrivalProcess arrivals)
      : rows_(rows), arrivals_(arrivals) {}

  std::optional<double> Ratio(const std::string& system, std::size_t functions) const {
    return MeasureOf(rows_, Labels(system, functions, arrivals_), "ratio");
  }
  void AtLeast(std::size_t functions, double least) {
    const auto ratio = Ratio("torpor", functions);
    if (!ratio) return;
    Add(absl::StrCat("Torpor at least ", least, " at ", functions, " functions"), *ratio >= least,
        Number(ratio, 3));
  }
  void Above(const std::string& above, const std::string& below, std::size_t functions) {
    const auto high = Ratio(above, functions);
    const auto low = Ratio(below, functions);
    if (!high || !low) return;
    Add(absl::StrCat(above, " above ", below, " at ", functions, " functions"), *high > *low,
        absl::StrCat(Number(high, 3), " against ", Number(low, 3)));
  }

  const std::vector<Finding>& findings() const { return findings_; }

 private:
  void Add(const std::string& claim, bool holds, const std::string& ours) {
    findings_.push_back(
        {absl::StrCat(claim, ", ", std::string(workload::ArrivalProcessName(arrivals_)),
                      " arrivals"),
         holds, ours});
  }

  const std::vector<Json>& rows_;
  const ArrivalProcess arrivals_;
  std::vector<Finding> findings_;
};

std::vector<Finding> Findings(const std::vector<Json>& rows) {
  std::vector<Finding> findings;
  for (const ArrivalProcess arrivals : {ArrivalProcess::kArtifact, ArrivalProcess::kPoisson}) {
    Finder finder(rows, arrivals);
    finder.AtLeast(480, 0.97);
    finder.AtLeast(560, 0.8);
    for (const char* const other : {"fifo", "lru", "block"}) finder.Above("torpor", other, 560);
    finder.Above("torpor", "fifo", 620);
    for (const std::size_t functions : {400, 480}) {
      for (const char* const other : {"torpor", "fifo", "lru", "block"}) {
        finder.Above(other, "random", functions);
      }
    }
    findings.insert(findings.end(), finder.findings().begin(), finder.findings().end());
  }
  return findings;
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
  figure.columns = {{"ran", "ran", 0},         {"compliant", "compliant", 1},
                    {"ratio", "ratio", 3},     {"in time", "attainment", 4},
                    {"p98 ms", "p98_ms", 1},   {"resident", "resident_share", 3},
                    {"host", "host_share", 3}, {"peer", "peer_share", 3},
                    {"load", "gpu_load", 2}};
  const auto node = std::make_shared<const NodeModel>(NodeOf(options, "paper-4gpu"));
  for (const ArrivalProcess arrivals : ArrivalsOf(options)) {
    for (const std::size_t functions : FunctionsOf(options, {320, 400, 480, 560, 620, 640, 720})) {
      for (const std::string& system : SystemsOf(
               options, {"torpor", "torpor-plus", "fifo", "lru", "block", "random", kBound})) {
        const Json labels = Labels(system, functions, arrivals);
        figure.cases.push_back({labels, [=](std::uint64_t seed) {
                                  return Measure(options, *node, labels, arrivals, seed);
                                }});
      }
    }
  }
  figure.paper = PaperRatio;
  figure.findings = Findings;
  figure.plot =
      FigurePlot{"functions", "functions", "share of compliant functions", "ratio", false};
  return figure;
}

}  // namespace torpor::sim
