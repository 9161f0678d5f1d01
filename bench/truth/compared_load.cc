#include "bench/truth/compared_load.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "emulator/node/model_account.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/example_load.h"
#include "tests/e2e/metrics_page.h"
#include "tools/loadgen/schedule.h"
#include "tools/sim/figures/measures.h"
#include "tools/sim/model_profile.h"
#include "tools/sim/simulation.h"

namespace torpor::truth {
namespace {

// Until nothing is learned any more no request is late, so that the queue begins without arrears.
constexpr Duration kLearningObjective = std::chrono::seconds(60);

// More than any node of this kind serves; halved so often, nothing of it is left.
constexpr double kMaxRequestsPerSecond = 1000;
constexpr int kHalvings = 24;

// Medians of nine differ by so much from one measurement to the next.
constexpr double kMaxWaver = 0.01;
constexpr int kSimulations = 20;

// Every third function is asked three times as often as the first, and so on.
std::vector<double> Shares() {
  std::vector<double> shares(kFunctions);
  double sum = 0;
  for (std::size_t i = 0; i < kFunctions; ++i) sum += shares[i] = static_cast<double>(1 + i % 3);
  for (double& share : shares) share /= sum;
  return shares;
}

struct Sent {            // NOLINT(bugprone-exception-escape): as LoadgenRun
  std::string workload;  // the file
  e2e::LoadgenRun run;
  std::string metrics_before;
  std::string metrics_after;
  emulator::ModelReport account;
};

// The daemon's node, with the functions of the profile's models.
class LoadedNode {
 public:
  LoadedNode(const TruthOptions& options, const NodeProfile& profile)
      : options_(options),
        profile_(profile),
        node_(TruthTopology(options), e2e::ExampleFleet::Names(TruthModels(), kFunctions),
              TruthSettings(options), 1, kTruthFunctionSetting),
        fleet_(node_, TruthModels(), kFunctions) {}

  // Returns with a node as the simulator begins: every function has had a request, one after the
  // other, of which the first found the GPUs empty.
  absl::Status Start() {
    node_.Start();
    SetObjectives([](const MeasuredModel&) { return kLearningObjective; });
    TORPOR_RETURN_IF_ERROR(fleet_.Start());
    SetObjectives(NodeProfile::Objective);
    TORPOR_RETURN_IF_ERROR(fleet_.EvictAll());
    for (std::size_t i = 0; i < kFunctions; ++i) {
      TORPOR_RETURN_IF_ERROR(fleet_.Ask(i).status());
    }
    return fleet_.AwaitIdle();
  }

  absl::StatusOr<Sent> Send(double requests_per_s) {
    const e2e::ExampleLoad plan = Plan(requests_per_s);
    auto account = emulator::ModelAccount::Open(node_.folder().path() + "/gpus/emulator-node");
    if (!account.ok()) return absl::AbortedError(account.failure().message);
    const std::string metrics_address = node_.Status().at("metrics_address");
    Sent sent;
    sent.workload = e2e::WriteWorkload(fleet_, plan, "workload.yaml");
    sent.metrics_before = e2e::ReadMetrics(metrics_address);
    account->Reset();
    sent.run = e2e::RunLoadgen(node_.folder().path(), sent.workload, plan.length);
    if (sent.run.exit_status != 0) return absl::AbortedError(sent.run.messages + node_.Logs());
    TORPOR_RETURN_IF_ERROR(fleet_.AwaitIdle());
    sent.account = account->Read();
    sent.metrics_after = e2e::ReadMetrics(metrics_address);
    return sent;
  }

  const e2e::ExampleFleet& fleet() const { return fleet_; }

 private:
  template <typename Objective>
  void SetObjectives(Objective objective) const {
    for (const e2e::ExampleFleet::Function& function : fleet_.functions()) {
      const double ms = ToMilliseconds(objective(profile_.models[function.model]));
      node_.Torporctl(
          {"function", "set", function.name, "--deadline", fmt::format("{:.0f}ms", ms)});
    }
  }

  e2e::ExampleLoad Plan(double requests_per_s) const {
    e2e::ExampleLoad plan;
    plan.objectives.reserve(kFunctions);
    for (const e2e::ExampleFleet::Function& function : fleet_.functions()) {
      plan.objectives.push_back(NodeProfile::Objective(profile_.models[function.model]));
    }
    plan.rates_per_s = Shares();
    for (double& rate : plan.rates_per_s) rate *= requests_per_s;
    plan.length = options_.length;
    plan.seed = options_.seed;
    return plan;
  }

  const TruthOptions& options_;
  const NodeProfile& profile_;
  e2e::EmulatedNode node_;
  e2e::ExampleFleet fleet_;
};

Findings FindingsOf(const Sent& sent, const TruthOptions& options) {
  const auto& report = sent.run.report;
  const auto share = [&](const char* path) {
    return report.at(path).get<double>() / report.at("requests").get<double>();
  };
  const auto grown = [&](const char* metric, const std::vector<std::string>& labels) {
    return e2e::ValueOf(sent.metrics_after, metric, labels) -
           e2e::ValueOf(sent.metrics_before, metric, labels);
  };
  const auto gigabytes_in = [&](const char* path) {
    return grown("torpor_swap_bytes_total", {R"(direction="in")", path}) / 1e9;
  };
  const auto gpus = static_cast<double>(report.at("gpus").size());
  Findings findings;
  findings.requests = report.at("requests");
  findings.attainment = report.at("attainment");
  findings.compliant = report.at("compliant_functions");
  findings.hit_ratio = share("resident");
  findings.from_host = share("swaps_pcie");
  findings.from_peer = share("swaps_nvlink");
  findings.pcie_gb = gigabytes_in(R"(path="pcie")");
  findings.nvlink_gb = gigabytes_in(R"(path="nvlink")");
  findings.p50_ms = report.at("latency_ms").at("p50").get<double>() / options.time_scale;
  findings.p98_ms = report.at("latency_ms").at("p98").get<double>() / options.time_scale;
  findings.gpu_load = grown("torpor_gpu_busy_seconds_total", {}) / gpus / ToSeconds(options.length);
  return findings;
}

Findings FindingsOf(const sim::Json& measures, const TruthOptions& options) {
  Findings findings;
  findings.requests = measures.at("requests");
  findings.attainment = measures.at("attainment");
  findings.compliant = measures.at("compliant");
  findings.hit_ratio = measures.at("resident_share");
  findings.from_host = measures.at("host_share");
  findings.from_peer = measures.at("peer_share");
  findings.pcie_gb = measures.at("host_gb");
  findings.nvlink_gb = measures.at("peer_gb");
  findings.p50_ms = measures.at("p50_ms").get<double>() / options.time_scale;
  findings.p98_ms = measures.at("p98_ms").get<double>() / options.time_scale;
  findings.gpu_load = measures.at("gpu_load");
  return findings;
}

// As the daemon's node is: replicas stay. Not yet with requests.
absl::StatusOr<sim::Scenario> ScenarioOf(const TruthOptions& options, const sim::Profiles& profiles,
                                         const sim::NodeModel& node) {
  sim::Scenario scenario;
  scenario.profiles = &profiles;
  scenario.node = &node;
  TORPOR_ASSIGN_OR_RETURN(scenario.system, sim::SystemNamed(options.policy));
  std::vector<std::size_t> models(profiles.models.size());
  std::iota(models.begin(), models.end(), 0U);
  scenario.functions = sim::FunctionsInTurn(profiles, models, kFunctions);
  scenario.length = options.length;
  scenario.seed = options.seed;
  scenario.keeps_replicas = true;
  return scenario;
}

// Requests a second at which the simulated GPUs are busy for `load` of the time.
double RateOf(double load, sim::Scenario scenario) {
  double low = 0;
  double high = kMaxRequestsPerSecond;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    std::vector<double> per_minute = Shares();
    for (double& rate : per_minute) rate *= 60 * middle;
    scenario.rates = workload::ConstantRates(per_minute);
    const sim::Json measures = sim::MeasuresOf(sim::Simulate(scenario), scenario);
    (measures.at("gpu_load").get<double>() < load ? low : high) = middle;
  }
  return low;
}

// What was measured, had it come out a little otherwise: each model's times by the same factor.
sim::Profiles Wavering(sim::Profiles profiles, std::mt19937_64& random) {
  std::uniform_real_distribution<double> waver(-kMaxWaver, kMaxWaver);
  for (sim::ModelProfile& model : profiles.models) {
    const double factor = 1 + waver(random);
    for (Duration* const time : {&model.resident, &model.host, &model.peer}) {
      *time = Duration(std::llround(static_cast<double>(time->count()) * factor));
    }
  }
  return profiles;
}

// One request's few milliseconds change which image is where for long, so that one simulation is as
// good as another.
std::vector<Findings> SimulateOften(const TruthOptions& options, const sim::Scenario& scenario) {
  std::mt19937_64 random(options.seed);
  std::vector<Findings> findings;
  findings.reserve(kSimulations);
  for (int i = 0; i < kSimulations; ++i) {
    const sim::Profiles profiles = Wavering(*scenario.profiles, random);
    sim::Scenario one = scenario;
    one.profiles = &profiles;
    findings.push_back(FindingsOf(sim::MeasuresOf(sim::Simulate(one), one), options));
  }
  return findings;
}

// The requests of the workload file, drawn as torpor-loadgen has drawn them.
absl::Status TakeRequests(const std::string& file, sim::Scenario* scenario) {
  TORPOR_ASSIGN_OR_RETURN(const loadgen::Workload workload, loadgen::ReadWorkload(file, ""));
  scenario->arrivals = workload.arrivals;
  TORPOR_ASSIGN_OR_RETURN(scenario->rates, loadgen::MakeRates(workload));
  scenario->length = loadgen::MeasuredDuration(workload, scenario->rates);
  scenario->seed = workload.seed;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Comparison> CompareLoad(const TruthOptions& options, const NodeProfile& profile,
                                       double load) {
  TORPOR_ASSIGN_OR_RETURN(const sim::Profiles profiles,
                          sim::ParseProfiles(profile.ToYaml(), "the node's profile"));
  TORPOR_ASSIGN_OR_RETURN(const emulator::Topology topology, SlowTopology(options));
  TORPOR_ASSIGN_OR_RETURN(const sim::NodeModel model,
                          sim::MakeNodeModel(topology, profile.reserved));
  TORPOR_ASSIGN_OR_RETURN(sim::Scenario scenario, ScenarioOf(options, profiles, model));
  const double rate = RateOf(load, scenario);
  std::fprintf(stderr, "load %.2f: %.2f requests/s\n", load, rate);
  LoadedNode node(options, profile);
  TORPOR_RETURN_IF_ERROR(node.Start());
  TORPOR_ASSIGN_OR_RETURN(const Sent sent, node.Send(rate));
  TORPOR_RETURN_IF_ERROR(TakeRequests(sent.workload, &scenario));
  Comparison comparison;
  comparison.load = load;
  comparison.length_s = ToSeconds(options.length);
  comparison.daemon = FindingsOf(sent, options);
  comparison.lag_p99_ms = sent.run.report.at("lag_ms").at("p99");
  comparison.account = sent.account.ToText();
  comparison.is_valid = sent.account.is_valid();
  comparison.simulator = SimulateOften(options, scenario);
  scenario.keeps_replicas = false;
  comparison.without_replicas =
      FindingsOf(sim::MeasuresOf(sim::Simulate(scenario), scenario), options);
  return comparison;
}

}  // namespace torpor::truth
