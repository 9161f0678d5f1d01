#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "tools/sim/figures/measures.h"

namespace torpor::sim {
namespace {

using workload::ArrivalProcess;

constexpr Duration kLength = std::chrono::minutes(31);
constexpr std::size_t kNodes = 6;
constexpr std::size_t kMany = 1000;  // of which the paper shows latencies and loads
// The paper does not give the cluster's rates. At the trace's a node has a third of Figure 11's
// load, and all of its functions fit its GPUs.
constexpr double kFactors[] = {1, 4};
// A cluster's own overhead is allowed for.
constexpr Duration kDeadline = std::chrono::milliseconds(150);
constexpr Duration kLateDeadline = std::chrono::milliseconds(250);

std::vector<FunctionSpec> ClusterFunctions(const Profiles& profiles, std::size_t count) {
  std::vector<std::size_t> models(profiles.models.size());
  for (std::size_t i = 0; i < models.size(); ++i) models[i] = i;
  std::vector<FunctionSpec> functions = FunctionsInTurn(profiles, models, count);
  for (FunctionSpec& function : functions) {
    const bool is_bert = profiles.models[function.model].name == "bert-qa";
    function.deadline = is_bert ? kLateDeadline : kDeadline;
  }
  return functions;
}

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

// Of each node's GPUs' loads over the highest of them.
Json LoadVariances(const Outcome& outcome) {
  Json variances = Json::array();
  for (std::size_t node = 0; node < outcome.nodes.size(); ++node) {
    std::vector<double> loads;
    for (std::size_t gpu = 0; gpu < outcome.nodes[node].size(); ++gpu) {
      loads.push_back(outcome.Load(node, gpu));  // NOLINT: a handful of them
    }
    const double most = std::max(*std::max_element(loads.begin(), loads.end()), 1e-12);
    double sum = 0;
    double squares = 0;
    for (const double load : loads) {
      sum += load / most;
      squares += load / most * load / most;
    }
    const auto count = static_cast<double>(loads.size());
    variances.push_back(squares / count - sum / count * (sum / count));
  }
  return variances;
}

Json Measure(const FigureOptions& options, const NodeModel& node, const Json& labels,
             ArrivalProcess arrivals, std::uint64_t seed) {
  const auto functions = labels["functions"].get<std::size_t>();
  Scenario scenario =
      BaseScenario(options, node, labels["system"].get<std::string>(), arrivals, seed);
  scenario.nodes = kNodes;
  scenario.functions = ClusterFunctions(*options.profiles, functions);
  scenario.rates = workload::DrawRows(options.rates, functions, seed);
  scenario.rates.Scale(labels["rate_factor"].get<double>());
  scenario.length = kLength;
  const Outcome outcome = Simulate(scenario);
  Json json = MeasuresOf(outcome, scenario);
  json["over_deadline"] = LetterValues(outcome, scenario.functions);
  json["load_variances"] = LoadVariances(outcome);
  double sum = 0;
  for (const Json& variance : json["load_variances"]) sum += variance.get<double>();
  json["load_variance"] = sum / static_cast<double>(kNodes);
  return json;
}

std::string Paper(const Json& row) {
  const auto system = row["system"].get<std::string>();
  const bool has_many = row["functions"] == kMany;
  if (system == "torpor") return has_many ? "1.00; 127/128 below 1" : "1.00";
  if (system == "simple-swap" && has_many) return "127/128 over 4";
  if (system == "non-swap" && has_many) return "127/128 over 7";
  if (system == "native") return "up to 500 functions";
  return "";
}

// The keys of Json pointers have ~1 for a slash.
constexpr const char* kTail = "over_deadline/127~1128";

void AddFindings(const std::vector<Json>& rows, ArrivalProcess arrivals, double factor,
                 std::vector<Finding>* findings) {
  const std::string where =
      absl::StrCat(" at ", factor, " times the rates, ",
                   std::string(workload::ArrivalProcessName(arrivals)), " arrivals");
  const auto measure = [&](const char* system, const char* key) {
    Json labels = Labels(system, kMany, arrivals);
    labels["rate_factor"] = factor;
    return MeasureOf(rows, labels, key);
  };
  if (const auto ratio = measure("torpor", "ratio")) {
    findings->push_back({absl::StrCat("all of 1000 functions comply under Torpor", where),
                         *ratio == 1, Number(ratio, 3)});
  }
  if (const auto tail = measure("torpor", kTail)) {
    findings->push_back(
        {absl::StrCat("Torpor's latencies over deadlines below 1 at 127/128", where), *tail < 1,
         Number(tail, 2)});
  }
  if (const auto tail = measure("simple-swap", kTail)) {
    findings->push_back({absl::StrCat("SimpleSwap's over 4", where), *tail > 4, Number(tail, 2)});
  }
  if (const auto tail = measure("non-swap", kTail)) {
    findings->push_back({absl::StrCat("NonSwap's over 7", where), *tail > 7, Number(tail, 2)});
  }
  const auto ours = measure("torpor", "load_variance");
  const auto theirs = measure("non-swap", "load_variance");
  if (ours && theirs) {
    findings->push_back({absl::StrCat("far less variance of the GPUs' load than NonSwap", where),
                         *ours < *theirs / 2,
                         absl::StrCat(Number(ours, 5), " against ", Number(theirs, 5))});
  }
}

std::vector<Finding> Findings(const std::vector<Json>& rows) {
  std::vector<Finding> findings;
  for (const ArrivalProcess arrivals : {ArrivalProcess::kArtifact, ArrivalProcess::kPoisson}) {
    for (const double factor : kFactors) AddFindings(rows, arrivals, factor, &findings);
    Json labels = Labels("native", kMany, arrivals);
    labels["rate_factor"] = kFactors[0];
    if (const auto ran = MeasureOf(rows, labels, "ran")) {
      findings.push_back(
          {absl::StrCat("Native holds 500 functions at most, ",
                        std::string(workload::ArrivalProcessName(arrivals)), " arrivals"),
           *ran <= 500, Number(ran, 0)});
    }
  }
  return findings;
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
  figure.columns = {{"ran", "ran", 1},
                    {"compliant", "compliant", 1},
                    {"ratio", "ratio", 3},
                    {"1/2", "over_deadline/1~12", 3},
                    {"63/64", "over_deadline/63~164", 3},
                    {"127/128", "over_deadline/127~1128", 3},
                    {"load variance", "load_variance", 5},
                    {"load", "gpu_load", 2}};
  const auto node = std::make_shared<const NodeModel>(NodeOf(options, "paper-4gpu"));
  for (const ArrivalProcess arrivals : ArrivalsOf(options)) {
    for (const double factor : RateFactorsOf(options, {std::begin(kFactors), std::end(kFactors)})) {
      for (const std::size_t functions :
           FunctionsOf(options, {200, 400, 500, 600, 800, 1000, 1200})) {
        for (const std::string& system :
             SystemsOf(options, {"torpor", "torpor-plus", "native", "non-swap", "simple-swap"})) {
          Json labels = Labels(system, functions, arrivals);
          labels["rate_factor"] = factor;
          figure.cases.push_back({labels, [=](std::uint64_t seed) {
                                    return Measure(options, *node, labels, arrivals, seed);
                                  }});
        }
      }
    }
  }
  figure.paper = Paper;
  figure.findings = Findings;
  figure.plot =
      FigurePlot{"functions", "functions", "share of compliant functions", "ratio", false};
  return figure;
}

}  // namespace torpor::sim
