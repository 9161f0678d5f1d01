// Rates that copies reach on the emulated node of the paper, against those of the model.
#include <benchmark/benchmark.h>
#include <unistd.h>

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

// One process for each way; all copy at the same time. `model_gbps` is what the topology lets them
// have together.
void Copy(benchmark::State& state, const std::vector<CopyWay>& ways, double model_gbps) {
  const std::string node = "/tmp/torpor-link-benchmark-" + std::to_string(getpid());
  setenv("TORPOR_EMULATOR_TOPOLOGY", TORPOR_BENCH_TOPOLOGY, 1);
  setenv("TORPOR_EMULATOR_NODE", node.c_str(), 1);
  std::vector<std::unique_ptr<CopyingProcess>> processes;
  processes.reserve(ways.size());
  for (const CopyWay way : ways) processes.push_back(std::make_unique<CopyingProcess>(way, kSize));
  auto account = ModelAccount::Open(node);
  unlink(node.c_str());
  if (!account.ok()) {
    state.SkipWithError(account.failure().message.c_str());
    return;
  }
  account->Reset();
  for (auto _ : state) {
    for (const auto& process : processes) process->StartCopy();
    for (const auto& process : processes) process->AwaitCopy();
  }
  const double gigabytes = static_cast<double>(ways.size() * kSize) / 1e9;
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
