// What a simulation takes, on one core: Figure 11 with all its systems and sizes, one seed and one
// arrival process, and requests of many functions on one node.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/run_benchmarks.h"
#include "tools/sim/figures/figure_list.h"
#include "tools/sim/figures/measures.h"
#include "tools/sim/figures/scenarios.h"
#include "tools/sim/upper_bound.h"
#include "tools/workload/rate_file.h"

namespace torpor::sim {
namespace {

constexpr std::size_t kTraceRows = 203;
// Of all functions together: about half of what four GPUs can do with images from the host.
constexpr double kRequestsPerSecond = 60;

// As torpor-sim has them: of the file that TORPOR_RATES names, or made up.
workload::MinuteRates Rates() {
  const char* const file = std::getenv("TORPOR_RATES");
  if (file == nullptr) return workload::TraceLikeRates(kTraceRows, 1);
  auto rates = workload::ReadRates(file);
  if (rates.ok()) return *std::move(rates);
  std::fprintf(stderr, "TORPOR_RATES: %s\n", std::string(rates.status().message()).c_str());
  std::exit(1);
}

// What simulations were told and served.
struct Counts {
  std::uint64_t events = 0;
  std::uint64_t requests = 0;

  void Add(const Outcome& outcome) {
    events += outcome.scheduler_events;
    for (const FunctionOutcome& function : outcome.functions) requests += function.arrived;
  }
  void Report(benchmark::State& state) const {
    state.counters["events"] = static_cast<double>(events);
    state.counters["requests"] = static_cast<double>(requests);
    state.counters["events_per_s"] =
        benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
    state.counters["requests_per_s"] =
        benchmark::Counter(static_cast<double>(requests), benchmark::Counter::kIsRate);
  }
};

void Figure11(benchmark::State& state, workload::ArrivalProcess arrivals) {
  FigureOptions options;
  options.profiles = &PaperProfiles();
  options.rates = Rates();
  options.arrivals = {arrivals};
  const auto testbed = MakeTestbed(options, "paper-4gpu");
  Counts counts;
  for (auto _ : state) {
    for (const Case& one : MakeFigure11(options).cases) {
      const Scenario scenario = Figure11Scenario(*testbed, one.labels, 1);
      if (one.labels["system"] == kBound) {
        benchmark::DoNotOptimize(CompliantBound(scenario));
        continue;
      }
      const Outcome outcome = Simulate(scenario);
      benchmark::DoNotOptimize(MeasuresOf(outcome, scenario));
      counts.Add(outcome);
    }
  }
  counts.Report(state);
}

// One request of each function on average.
void ManyFunctions(benchmark::State& state, const std::string& system) {
  const auto functions = static_cast<std::size_t>(state.range(0));
  const double seconds = static_cast<double>(functions) / kRequestsPerSecond;
  const Profiles& profiles = PaperProfiles();
  const NodeModel node = *ReadNodeModel("paper-4gpu", profiles.reserved);
  Scenario scenario;
  scenario.profiles = &profiles;
  scenario.node = &node;
  scenario.system = *SystemNamed(system);
  scenario.functions = FunctionsInTurn(profiles, {0, 1, 2, 3, 4, 5, 6, 7}, functions);
  scenario.rates = workload::ConstantRates(std::vector<double>(functions, 60 / seconds));
  scenario.length = Duration(std::llround(seconds * 1e9));
  Counts counts;
  for (auto _ : state) counts.Add(Simulate(scenario));
  counts.Report(state);
}

BENCHMARK_CAPTURE(Figure11, artifact, workload::ArrivalProcess::kArtifact)
    ->Iterations(1)
    ->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(ManyFunctions, torpor, "torpor")
    ->RangeMultiplier(10)
    ->Range(10'000, 1'000'000)
    ->Iterations(1)
    ->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(ManyFunctions, torpor_plus, "torpor-plus")
    ->Arg(1'000'000)
    ->Iterations(1)
    ->Unit(benchmark::kSecond);

}  // namespace
}  // namespace torpor::sim

int main(int argc, char** argv) { return torpor::bench::RunBenchmarks(argc, argv); }
