// Swap-ins against what the links allow, with all costs of the modelled driver in force: when the
// first kernel of a request runs, when the whole image is there, and whether a peer's GPU is the
// better source than the host. torpord, executors and client libraries are the real ones, the
// function sums up layers. Times are the model's.
//   first_kernel_ms   by how much later an evicted function answers from its first layer
//   of_link_time      the time until the whole image is there, in times of the link's for the bytes
//   of_pcie_time      a swap-in over NVLink, in times of the same image's over PCIe
// And the first swap-in of an executor that has just been started, with the image's host memory
// pinned ahead or not.
#include <benchmark/benchmark.h>
#include <signal.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "bench/e2e/modelled_node.h"
#include "bench/e2e/served_function.h"
#include "bench/plot/plot_data.h"
#include "bench/run_benchmarks.h"
#include "emulator/node/model_account.h"
#include "tests/e2e/await.h"
#include "tests/e2e/await_status.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/metrics_page.h"
#include "tools/torporctl/admin_requests.h"

namespace torpor::bench {
namespace {

constexpr int kRuns = 7;
constexpr const char* kFunction = "moved";

struct Layers {
  int count;
  int mebibytes;  // of a layer
};

// Room for the largest image.
std::string Settings() { return "pool_bytes: 6GiB\n" + GroupSetting(); }

std::vector<std::string> CommandOf(const Layers& layers) {
  return {std::string(DRIVEN_DIR) + "/layers_server", "--layers", std::to_string(layers.count),
          "--mebibytes", std::to_string(layers.mebibytes)};
}

void FromHost(benchmark::State& state, const Layers& layers) {
  ServedFunction served(ModelledTopology(), Settings(),
                        {.command = CommandOf(layers),
                         .path = "/first",
                         .body = [](int) { return "{}"; },
                         .setting = "memory_limit: 5GiB"});
  std::vector<double> warm;
  std::vector<double> cold;
  std::vector<double> transfer;
  double bytes = 0;
  warm.reserve(kRuns);
  for (int i = 0; i < kRuns; ++i) warm.push_back(served.Warm());
  for ([[maybe_unused]] auto _ : state) {
    const ServedFunction::ColdRun run = served.Cold();
    state.SetIterationTime(run.transfer_ms * 1e-3);
    cold.push_back(run.latency_ms);
    transfer.push_back(run.transfer_ms);
    bytes = run.bytes;
  }
  const double warm_ms = Quantile(warm, 0.5);
  state.counters["first_kernel_ms"] = Quantile(cold, 0.5) - warm_ms;
  state.counters["first_kernel_ms_least"] = Quantile(cold, 0) - warm_ms;
  state.counters["first_kernel_ms_max"] = Quantile(cold, 1) - warm_ms;
  state.counters["warm_ms"] = warm_ms;
  state.counters["transfer_ms"] = Quantile(transfer, 0.5);
  state.counters["MB"] = bytes / 1e6;
  state.counters["of_link_time"] = Quantile(transfer, 0.5) / LinkMs(bytes);
  state.counters["of_link_time_max"] = Quantile(transfer, 1) / LinkMs(bytes);
  Conclude(state, served.Report());
}

// Two functions of two tenants that take turns on a GPU with room for one: a request to one of them
// evicts the other. Nothing is written back, so that the time is the driver's and the link's.
class FunctionsInTurn {
 public:
  FunctionsInTurn(const Layers& layers, const std::string& isolation)
      : node_(ModelledTopology(), {kNames[0], kNames[1]},
              "isolation: " + isolation + "\n" + Settings(layers), 1,
              "memory_limit: " + std::to_string(ImageMebibytes(layers)) +
                  "MiB\n    stateless: true\n    tenant: of-{function}") {
    node_.Start();
    metrics_address_ = node_.Status().at("metrics_address");
    for (const char* const name : kNames) {
      node_.StartFunction(name, CommandOf(layers));
      for (int i = 0; i < kLearningRuns; ++i) Ask(name);
    }
    for (int i = 0; i < kLearningRuns; ++i) Turn();
    auto account = emulator::ModelAccount::Open(node_.folder().path() + "/gpus/emulator-node");
    if (!account.ok()) Fail(account.failure().message);
    account_ = std::make_unique<emulator::ModelAccount>(std::move(*account));
    account_->Reset();
  }

  // A request's latency while its function is resident.
  double Warm() const { return Ask(kNames[next_ ^ 1]); }
  struct TurnTimes {
    double latency_ms = 0;
    double transfer_ms = 0;
    double bytes = 0;
  };
  // A request to the function that is not resident.
  TurnTimes Turn() {
    node_.WaitUntilIdle();
    const std::string before = e2e::ReadMetrics(metrics_address_);
    TurnTimes times;
    times.latency_ms = Ask(kNames[next_]);
    next_ ^= 1;
    std::string after;
    const absl::Status ended = e2e::Await("the swap-in has ended", [&] {
      after = e2e::ReadMetrics(metrics_address_);
      return SwapsIn(after) > SwapsIn(before);
    });
    if (!ended.ok()) Fail(std::string(ended.message()) + "\n" + node_.Logs());
    times.transfer_ms = (In(after, "torpor_swap_duration_seconds_sum") -
                         In(before, "torpor_swap_duration_seconds_sum")) *
                        1e3 / ModelledNode().time_scale;
    times.bytes = In(after, "torpor_swap_bytes_total") - In(before, "torpor_swap_bytes_total");
    return times;
  }
  emulator::ModelReport Report() const { return account_->Read(); }

 private:
  static constexpr const char* kNames[] = {"one", "other"};
  static constexpr int kLearningRuns = 4;

  // Large chunks of the H200 included.
  static int ImageMebibytes(const Layers& layers) { return layers.count * layers.mebibytes + 64; }
  static std::string Settings(const Layers& layers) {
    return "gpus: [0]\nidle_write_back: off\npool_bytes: " +
           std::to_string(ImageMebibytes(layers) + 32) + "MiB\n" + GroupSetting();
  }
  static double In(const std::string& page, const char* metric) {
    return e2e::ValueOf(page, metric, {R"(direction="in")"});
  }
  static double SwapsIn(const std::string& page) {
    return In(page, "torpor_swap_duration_seconds_count");
  }
  double Ask(const std::string& name) const {
    const TimePoint begin = SteadyClock().Now();
    const e2e::Reply reply = node_.PostOne("/function/" + name + "/first", "{}");
    if (reply.status != 200) Fail("a wrong answer: " + reply.body + "\n" + node_.Logs());
    return ModelledMs(SteadyClock().Now() - begin);
  }

  e2e::EmulatedNode node_;
  std::string metrics_address_;
  std::size_t next_ = 0;  // not resident
  std::unique_ptr<emulator::ModelAccount> account_;
};

void InAnothersPlaceUnder(benchmark::State& state, const Layers& layers,
                          const std::string& isolation) {
  FunctionsInTurn functions(layers, isolation);
  std::vector<double> warm;
  std::vector<double> first;
  std::vector<double> transfer;
  double bytes = 0;
  for ([[maybe_unused]] auto _ : state) {
    const FunctionsInTurn::TurnTimes times = functions.Turn();
    state.SetIterationTime(times.transfer_ms * 1e-3);
    first.push_back(times.latency_ms);
    transfer.push_back(times.transfer_ms);
    bytes = std::max(bytes, times.bytes);
    warm.push_back(functions.Warm());
  }
  const double warm_ms = Quantile(warm, 0.5);
  state.counters["first_kernel_ms"] = Quantile(first, 0.5) - warm_ms;
  state.counters["first_kernel_ms_least"] = Quantile(first, 0) - warm_ms;
  state.counters["first_kernel_ms_max"] = Quantile(first, 1) - warm_ms;
  state.counters["warm_ms"] = warm_ms;
  state.counters["transfer_ms"] = Quantile(transfer, 0.5);
  state.counters["MB"] = bytes / 1e6;
  state.counters["of_link_time"] = Quantile(transfer, 0.5) / LinkMs(bytes);
  Conclude(state, functions.Report());
}

void InAnothersPlace(benchmark::State& state, const Layers& layers) {
  InAnothersPlaceUnder(state, layers, "shared");
}

void InAnotherTenantsPlace(benchmark::State& state, const Layers& layers) {
  InAnothersPlaceUnder(state, layers, "tenant");
}

void InAnotherFunctionsPlace(benchmark::State& state, const Layers& layers) {
  InAnothersPlaceUnder(state, layers, "function");
}

// A function that an administrator brings to GPUs.
class MovingFunction {
 public:
  // `settings` are further lines of torpord's configuration.
  MovingFunction(const Layers& layers, const std::string& settings)
      : node_(ModelledTopology(), {kFunction},
              "idle_write_back: off\nkeep_replicas: false\n" + settings + Settings(), 1,
              "memory_limit: 5GiB") {
    node_.Start();
    metrics_address_ = node_.Status().at("metrics_address");
    node_.StartFunction(kFunction, CommandOf(layers));
    const e2e::Reply reply = node_.PostOne(std::string("/function/") + kFunction + "/first", "{}");
    if (reply.status != 200) Fail("a wrong answer: " + reply.body + "\n" + node_.Logs());
    auto account = emulator::ModelAccount::Open(node_.folder().path() + "/gpus/emulator-node");
    if (!account.ok()) Fail(account.failure().message);
    account_ = std::make_unique<emulator::ModelAccount>(std::move(*account));
  }

  void Evict() const {
    const absl::Status evicted = e2e::EvictWhenIdle(Socket(), kFunction);
    if (!evicted.ok()) Fail(std::string(evicted.message()));
  }
  // Brings the function to the GPU and returns the swap-in's milliseconds over the path.
  double Load(int gpu, const std::string& path) const {
    const double before = SwapSeconds(path);
    const absl::Status loaded = torporctl::Load(Socket(), kFunction, gpu);
    if (!loaded.ok()) Fail(std::string(loaded.message()) + "\n" + node_.Logs());
    const double seconds = SwapSeconds(path) - before;
    if (seconds <= 0) Fail("the image did not come over " + path);
    return seconds * 1e3 / ModelledNode().time_scale;
  }
  // Ends GPU 0's executor and returns when its successor has been told of the function, and if it
  // `pins_ahead`, has done so.
  void RestartExecutor(bool pins_ahead) {
    const pid_t executor = node_.ExecutorOf(0);
    const std::size_t before = TimesLogged(kPinned);
    const std::size_t ready_before = TimesLogged(kReady);
    kill(executor, SIGKILL);
    node_.WaitUntilKnownDead(0, executor);
    const absl::Status ready = e2e::Await("the new executor is ready", [&] {
      return TimesLogged(kReady) > ready_before && (!pins_ahead || TimesLogged(kPinned) > before);
    });
    if (!ready.ok()) Fail(std::string(ready.message()) + "\n" + node_.Logs());
  }
  emulator::ModelAccount& account() { return *account_; }

 private:
  static constexpr const char* kPinned = "pieces of images ahead of need";
  static constexpr const char* kReady = "GPU 0: ready";

  std::size_t TimesLogged(const std::string& text) const {
    const std::string logs = node_.Logs();
    std::size_t times = 0;
    for (std::size_t at = logs.find(text); at != logs.npos; at = logs.find(text, at + 1)) ++times;
    return times;
  }
  std::string Socket() const { return node_.folder().path() + "/admin/admin.sock"; }
  double SwapSeconds(const std::string& path) const {
    return e2e::ValueOf(e2e::ReadMetrics(metrics_address_), "torpor_swap_duration_seconds_sum",
                        {R"(direction="in")", "path=\"" + path + "\""});
  }

  e2e::EmulatedNode node_;
  std::string metrics_address_;
  std::unique_ptr<emulator::ModelAccount> account_;
};

void FromPeer(benchmark::State& state, const Layers& layers) {
  MovingFunction function(layers, "gpus: [0, 1]\n");
  const auto move = [&] {
    function.Evict();
    const double from_host = function.Load(0, "pcie");
    return std::pair(from_host, function.Load(1, "nvlink"));
  };
  move();
  function.account().Reset();
  std::vector<double> from_host;
  std::vector<double> from_peer;
  for ([[maybe_unused]] auto _ : state) {
    const auto [host_ms, peer_ms] = move();
    state.SetIterationTime(peer_ms * 1e-3);
    from_host.push_back(host_ms);
    from_peer.push_back(peer_ms);
  }
  state.counters["pcie_ms"] = Quantile(from_host, 0.5);
  state.counters["nvlink_ms"] = Quantile(from_peer, 0.5);
  state.counters["nvlink_ms_max"] = Quantile(from_peer, 1);
  state.counters["of_pcie_time"] = Quantile(from_peer, 0.5) / Quantile(from_host, 0.5);
  Conclude(state, function.account().Read());
}

void ToNewExecutor(benchmark::State& state, const Layers& layers, bool pins_ahead) {
  const std::string setting = pins_ahead ? "true" : "false";
  MovingFunction function(layers,
                          "gpus: [0]\nlog_level: debug\nswap_pinned_ahead: " + setting + "\n");
  const double bytes = static_cast<double>(layers.count) * layers.mebibytes * kMiB;
  std::vector<double> first;
  std::vector<double> second;
  function.Evict();
  function.account().Reset();
  for ([[maybe_unused]] auto _ : state) {
    function.RestartExecutor(pins_ahead);
    first.push_back(function.Load(0, "pcie"));
    state.SetIterationTime(first.back() * 1e-3);
    function.Evict();
    second.push_back(function.Load(0, "pcie"));
    function.Evict();
  }
  state.counters["first_ms"] = Quantile(first, 0.5);
  state.counters["first_ms_least"] = Quantile(first, 0);
  state.counters["first_ms_max"] = Quantile(first, 1);
  state.counters["second_ms"] = Quantile(second, 0.5);
  state.counters["of_link_time"] = Quantile(first, 0.5) / LinkMs(bytes);
  Conclude(state, function.account().Read());
}

void ToNewExecutorAhead(benchmark::State& state, const Layers& layers) {
  ToNewExecutor(state, layers, /*pins_ahead=*/true);
}

void ToNewExecutorOnDemand(benchmark::State& state, const Layers& layers) {
  ToNewExecutor(state, layers, /*pins_ahead=*/false);
}

struct Measurement {
  const char* name;
  void (*measure)(benchmark::State&, const Layers&);
  Layers layers;
  std::size_t gpus;  // at least
};

constexpr Measurement kMeasurements[] = {
    {"FromHost/like ResNet-152", FromHost, {120, 2}, 1},
    {"FromHost/of 1 GiB", FromHost, {32, 32}, 1},
    {"FromHost/of 4 GiB", FromHost, {32, 128}, 1},
    {"InAnothersPlace/like ResNet-152", InAnothersPlace, {120, 2}, 1},
    {"InAnothersPlace/like ResNet-152, isolation: tenant", InAnotherTenantsPlace, {120, 2}, 1},
    {"InAnothersPlace/like ResNet-152, isolation: function", InAnotherFunctionsPlace, {120, 2}, 1},
    {"InAnothersPlace/of 1 GiB", InAnothersPlace, {32, 32}, 1},
    {"InAnothersPlace/of 1 GiB, isolation: tenant", InAnotherTenantsPlace, {32, 32}, 1},
    {"ToNewExecutor/like ResNet-152, pinned ahead", ToNewExecutorAhead, {120, 2}, 1},
    {"ToNewExecutor/like ResNet-152, pinned on demand", ToNewExecutorOnDemand, {120, 2}, 1},
    {"ToNewExecutor/of 1 GiB, pinned ahead", ToNewExecutorAhead, {32, 32}, 1},
    {"ToNewExecutor/of 1 GiB, pinned on demand", ToNewExecutorOnDemand, {32, 32}, 1},
    {"FromPeer/8 MiB", FromPeer, {4, 2}, 2},
    {"FromPeer/16 MiB", FromPeer, {8, 2}, 2},
    {"FromPeer/32 MiB", FromPeer, {16, 2}, 2},
    {"FromPeer/64 MiB", FromPeer, {32, 2}, 2},
    {"FromPeer/256 MiB", FromPeer, {16, 16}, 2},
    {"FromPeer/1 GiB", FromPeer, {32, 32}, 2},
};

void Register() {
  for (const Measurement& measurement : kMeasurements) {
    if (ModelledNode().gpus.size() < measurement.gpus) continue;
    benchmark::RegisterBenchmark(measurement.name, measurement.measure, measurement.layers)
        ->UseManualTime()
        ->Iterations(kRuns)
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace torpor::bench

int main(int argc, char** argv) {
  torpor::bench::Register();
  return torpor::bench::RunBenchmarks(argc, argv);
}
