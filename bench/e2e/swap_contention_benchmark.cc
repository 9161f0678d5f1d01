// Swap-ins at the same time, each to a GPU of its own: what they reach together, against what the
// links of the paper's node let through, where two GPUs share a switch. Times are the model's.
//   of_link_rate  what the links need for the bytes, of what the swap-ins took
#include <benchmark/benchmark.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/e2e/modelled_node.h"
#include "bench/plot/plot_data.h"
#include "bench/run_benchmarks.h"
#include "emulator/node/model_account.h"
#include "tests/e2e/await_status.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/metrics_page.h"
#include "tools/torporctl/admin_requests.h"

namespace torpor::bench {
namespace {

constexpr int kRounds = 5;

struct Together {
  const char* name;
  std::vector<unsigned> gpus;
};

const Together kTogether[] = {
    {"1 GPU", {0}},
    {"2 GPUs behind one switch", {0, 1}},
    {"2 GPUs behind two switches", {0, 2}},
    {"3 GPUs", {0, 1, 2}},
    {"4 GPUs", {0, 1, 2, 3}},
};

// Those of kTogether; other GPUs of the node are left alone.
constexpr unsigned kGpus = 4;

std::string FunctionOf(unsigned gpu) { return "on-" + std::to_string(gpu); }

// What one of `gpus` gets of the links while all copy.
double LimitGbps(unsigned gpu, const std::vector<unsigned>& gpus) {
  const auto& all = ModelledNode().gpus;
  if (!all[gpu].pcie_switch) return all[gpu].pcie_gbps;
  const unsigned its_switch = *all[gpu].pcie_switch;
  const auto sharing = std::ranges::count_if(
      gpus, [&](unsigned other) { return all[other].pcie_switch == its_switch; });
  return std::min(all[gpu].pcie_gbps,
                  ModelledNode().switches[its_switch].gbps / static_cast<double>(sharing));
}

// The node with a function for each GPU, all with models of the same size.
class Node {
 public:
  // No GPU shall do anything beside the swap-ins.
  Node()
      : node_(ModelledTopology(), Functions(),
              "gpus: [0, 1, 2, 3]\nidle_write_back: off\n" + GroupSetting()) {
    node_.Start();
    metrics_address_ = node_.Status().at("metrics_address");
    for (unsigned gpu = 0; gpu < kGpus; ++gpu) StartFunctionOf(gpu);
    auto account = emulator::ModelAccount::Open(node_.folder().path() + "/gpus/emulator-node");
    if (!account.ok()) Fail(account.failure().message);
    account_ = std::make_unique<emulator::ModelAccount>(std::move(*account));
  }

  struct Round {
    double bytes = 0;                    // of one function
    double swap_ms = 0;                  // all swap-ins', as torpord measures them
    std::map<unsigned, double> load_ms;  // until each GPU's function is there, by GPU
  };

  // Evicts the functions of these GPUs; then brings them back, all at once.
  Round SwapIn(const std::vector<unsigned>& gpus) {
    for (const unsigned gpu : gpus) Evict(gpu);
    const std::string before = e2e::ReadMetrics(metrics_address_);
    Round round;
    for (const unsigned gpu : gpus) round.load_ms[gpu] = 0;
    std::vector<std::thread> loads;
    loads.reserve(gpus.size());
    for (auto& load : round.load_ms) {
      loads.emplace_back([this, &load] { load.second = Load(load.first); });
    }
    for (std::thread& load : loads) load.join();
    const std::string after = e2e::ReadMetrics(metrics_address_);
    const auto grown = [&](const char* metric) {
      return e2e::ValueOf(after, metric, {R"(direction="in")"}) -
             e2e::ValueOf(before, metric, {R"(direction="in")"});
    };
    round.bytes = grown("torpor_swap_bytes_total") / static_cast<double>(gpus.size());
    round.swap_ms = grown("torpor_swap_duration_seconds_sum") * 1e3 / ModelledNode().time_scale;
    return round;
  }

  emulator::ModelAccount& account() { return *account_; }

 private:
  static std::vector<std::string> Functions() {
    std::vector<std::string> functions;
    for (unsigned gpu = 0; gpu < kGpus; ++gpu) {
      functions.push_back(FunctionOf(gpu));
    }
    return functions;
  }

  // A quarter of Bert-qa's bytes, as in swap_benchmark.cc.
  void StartFunctionOf(unsigned gpu) {
    node_.StartFunction(FunctionOf(gpu),
                        {std::string(TORPOR_BIN_DIR) + "/examples/encoder", "--layers", "6",
                         "--hidden", "1024", "--seed", std::to_string(gpu + 1)});
    const e2e::Reply reply =
        node_.PostOne("/function/" + FunctionOf(gpu) + "/encode", R"({"tokens":[17,4,901,33]})");
    if (reply.status != 200) Fail("a wrong answer: " + reply.body + "\n" + node_.Logs());
  }

  std::string Socket() const { return node_.folder().path() + "/admin/admin.sock"; }

  void Evict(unsigned gpu) const {
    const absl::Status evicted = e2e::EvictWhenIdle(Socket(), FunctionOf(gpu));
    if (!evicted.ok()) Fail(std::string(evicted.message()));
  }

  double Load(unsigned gpu) const {
    const TimePoint begin = SteadyClock().Now();
    const absl::Status loaded = torporctl::Load(Socket(), FunctionOf(gpu), static_cast<int>(gpu));
    if (!loaded.ok()) Fail(std::string(loaded.message()) + "\n" + node_.Logs());
    return ModelledMs(SteadyClock().Now() - begin);
  }

  e2e::EmulatedNode node_;
  std::string metrics_address_;
  std::unique_ptr<emulator::ModelAccount> account_;
};

// Shared by all benchmarks: a node takes longer to start than a benchmark to run.
std::unique_ptr<Node>& TheNode() {
  static std::unique_ptr<Node> node;
  if (node == nullptr) node = std::make_unique<Node>();
  return node;
}

struct Figures {
  std::map<std::string, double> gbps;
  std::map<std::string, double> limit_gbps;
  bool is_valid = true;
};
Figures& Measured() {
  static auto* const figures = new Figures;
  return *figures;
}

void SwapInTogether(benchmark::State& state, const Together& together) {
  Node& node = *TheNode();
  node.SwapIn(together.gpus);
  node.account().Reset();
  std::vector<double> mean_ms;
  std::map<unsigned, std::vector<double>> load_ms;
  double bytes = 0;
  for ([[maybe_unused]] auto _ : state) {
    const Node::Round round = node.SwapIn(together.gpus);
    const auto slowest =
        std::ranges::max_element(round.load_ms, {}, [](const auto& load) { return load.second; });
    state.SetIterationTime(slowest->second * 1e-3);
    mean_ms.push_back(round.swap_ms / static_cast<double>(together.gpus.size()));
    for (const auto& [gpu, ms] : round.load_ms) load_ms[gpu].push_back(ms);
    bytes = round.bytes;
  }
  double limit_ms = 0;
  double limit_gbps = 0;
  for (const unsigned gpu : together.gpus) {
    const double limit = LimitGbps(gpu, together.gpus);
    limit_ms += bytes / limit / 1e6 / static_cast<double>(together.gpus.size());
    limit_gbps += limit;
    const std::string name = "gpu" + std::to_string(gpu) + "_GBps";
    state.counters[name] = bytes / 1e6 / Quantile(load_ms[gpu], 0.5);
    state.counters[name + "_limit"] = limit;
  }
  const double of_link_rate = limit_ms / Quantile(mean_ms, 0.5);
  state.counters["MB_each"] = bytes / 1e6;
  state.counters["swap_ms"] = Quantile(mean_ms, 0.5);
  state.counters["swap_ms_limit"] = limit_ms;
  state.counters["of_link_rate"] = of_link_rate;
  const emulator::ModelReport report = node.account().Read();
  Conclude(state, report);
  Measured().is_valid = Measured().is_valid && report.is_valid();
  Measured().gbps[together.name] = of_link_rate * limit_gbps;
  Measured().limit_gbps[together.name] = limit_gbps;
}

void WritePlots() {
  BarPlot plot{TitleOf("Swap-ins at the same time", Measured().is_valid),
               "GB/s of all together",
               false,
               {},
               {}};
  BarSeries limit{"the links' limit", {}};
  BarSeries swaps{"swap-ins", {}};
  for (const Together& together : kTogether) {
    plot.groups.emplace_back(together.name);
    limit.values.push_back(Measured().limit_gbps[together.name]);
    swaps.values.push_back(Measured().gbps[together.name]);
  }
  plot.series = {std::move(limit), std::move(swaps)};
  WritePlot("swap_contention", plot);
}

void Register() {
  for (const Together& together : kTogether) {
    const std::string name = std::string("SwapInTogether/") + together.name;
    benchmark::RegisterBenchmark(name.c_str(), SwapInTogether, together)
        ->UseManualTime()
        ->Iterations(kRounds)
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace torpor::bench

int main(int argc, char** argv) {
  torpor::bench::Register();
  if (const int status = torpor::bench::RunBenchmarks(argc, argv); status != 0) return status;
  torpor::bench::WritePlots();
  torpor::bench::TheNode().reset();
  return 0;
}
