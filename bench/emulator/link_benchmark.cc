// Rates that copies reach on the emulated node of the paper, against those of the model. With
// TORPOR_BENCH_GPUS, a number of GPUs: rates of the driver that the dynamic linker finds, which has
// so many.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/emulator/copying_process.h"
#include "emulator/node/model_account.h"

namespace torpor::emulator {
namespace {

constexpr std::size_t kSize = std::size_t{64} << 20;
constexpr double kTimeScale = 10;  // the topology's

// GPUs of the machine's own driver; 0: the emulated node of the paper is measured.
int OwnGpus() {
  const char* const gpus = std::getenv("TORPOR_BENCH_GPUS");
  return gpus == nullptr ? 0 : std::atoi(gpus);
}

std::vector<std::unique_ptr<CopyingProcess>> StartProcesses(const std::vector<CopyWay>& ways) {
  std::vector<std::unique_ptr<CopyingProcess>> processes;
  processes.reserve(ways.size());
  for (const CopyWay way : ways) processes.push_back(std::make_unique<CopyingProcess>(way, kSize));
  return processes;
}

// Copies as long as the benchmark runs; gives the gigabytes of a round.
double CopyAll(benchmark::State& state, const std::vector<std::unique_ptr<CopyingProcess>>& all) {
  for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    for (const auto& process : all) process->StartCopy();
    for (const auto& process : all) process->AwaitCopy();
  }
  return static_cast<double>(all.size() * kSize) / 1e9;
}

void CopyOnOwnGpus(benchmark::State& state, const std::vector<CopyWay>& ways) {
  for (const CopyWay way : ways) {
    if (std::max(way.from, way.to) < OwnGpus()) continue;
    state.SkipWithError("there are not as many GPUs");
    return;
  }
  const double gigabytes = CopyAll(state, StartProcesses(ways));
  state.counters["GB/s"] =
      benchmark::Counter(gigabytes, benchmark::Counter::kIsIterationInvariantRate);
}

// One process for each way; all copy at the same time. `model_gbps` is what the topology lets them
// have together.
void Copy(benchmark::State& state, const std::vector<CopyWay>& ways, double model_gbps) {
  if (OwnGpus() > 0) {
    CopyOnOwnGpus(state, ways);
    return;
  }
  const std::string node = "/tmp/torpor-link-benchmark-" + std::to_string(getpid());
  setenv("TORPOR_EMULATOR_TOPOLOGY", TORPOR_BENCH_TOPOLOGY, 1);
  setenv("TORPOR_EMULATOR_NODE", node.c_str(), 1);
  const auto processes = StartProcesses(ways);
  auto account = ModelAccount::Open(node);
  unlink(node.c_str());
  if (!account.ok()) {
    state.SkipWithError(account.failure().message.c_str());
    return;
  }
  account->Reset();
  const double gigabytes = CopyAll(state, processes);
  using benchmark::Counter;
  state.counters["modelled GB/s"] =
      Counter(gigabytes * kTimeScale, Counter::kIsIterationInvariantRate);
  state.counters["of_model"] =
      Counter(gigabytes * kTimeScale / model_gbps, Counter::kIsIterationInvariantRate);
  state.SetLabel(account->Read().ToText());
}

constexpr int kHost = CopyWay::kHost;
using Ways = std::vector<CopyWay>;

#define LINK_BENCHMARK(name, ways, gbps) \
  BENCHMARK_CAPTURE(Copy, name, ways, gbps)->UseRealTime()->Unit(benchmark::kMillisecond)

LINK_BENCHMARK(HostToOneGpu, (Ways{{kHost, 0}}), 12);
LINK_BENCHMARK(TwoProcessesToOneGpu, (Ways{{kHost, 0}, {kHost, 0}}), 12);
LINK_BENCHMARK(TwoProcessesBehindOneSwitch, (Ways{{kHost, 0}, {kHost, 1}}), 13);
LINK_BENCHMARK(TwoProcessesBehindTwoSwitches, (Ways{{kHost, 0}, {kHost, 2}}), 24);
LINK_BENCHMARK(OneNvlink, (Ways{{0, 1}}), 25);
LINK_BENCHMARK(TwoNvlinks, (Ways{{0, 3}}), 50);
LINK_BENCHMARK(TwoProcessesOverTwoNvlinks, (Ways{{0, 3}, {0, 3}}), 50);

}  // namespace
}  // namespace torpor::emulator

BENCHMARK_MAIN();
