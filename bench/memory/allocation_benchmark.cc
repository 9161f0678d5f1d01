// Figure 13: how long allocating a model's blocks takes in the pool of two tiers, in a single pool
// over the driver (the paper's Torpor-Block), and by the driver alone; all replay one trace of
// PyTorch processes that share a GPU of 30 GB. The emulator's driver unless TORPOR_BENCH_DRIVER_DIR
// names the folder of another ("" for the system's).
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/memory/driver_memory.h"
#include "bench/plot/plot_data.h"
#include "bench/run_benchmarks.h"
#include "memory/tiered_placement.h"
#include "memory/trace/model_trace.h"
#include "memory/trace/single_pool.h"

namespace torpor::memory {
namespace {

// A tenth more than the trace's models ever need together: the GPU is full most of the time.
constexpr Bytes kModelBytes = 30 * kGiB;
constexpr Bytes kGpuBytes = kModelBytes + kModelBytes / 10;

const AllocationTrace& Trace() {
  static const auto* const trace = [] {
    ModelTraceOptions options;
    options.gpu_bytes = kModelBytes;
    return new AllocationTrace(MakeModelTrace(options));
  }();
  return *trace;
}

// What the latest run of each has measured, for the plots.
std::map<std::string, ReplayReport>& Reports() {
  static auto* const reports = new std::map<std::string, ReplayReport>;
  return *reports;
}

std::uint64_t NowNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

std::vector<double> Samples(const std::vector<std::uint64_t>& nanoseconds, double per) {
  std::vector<double> samples;
  samples.reserve(nanoseconds.size());
  for (const std::uint64_t ns : nanoseconds) samples.push_back(static_cast<double>(ns) / per);
  return samples;
}

void ReplayOnce(benchmark::State& state, const std::string& name, ReplayTarget& target) {
  ReplayOptions options;
  options.now_ns = NowNs;
  const std::uint64_t begin = NowNs();
  ReplayReport report = ReplayTrace(Trace(), target, options);
  state.SetIterationTime(static_cast<double>(NowNs() - begin) * 1e-9);
  const std::vector<double> samples = Samples(report.allocation_ns, 1);
  state.counters["allocations"] = static_cast<double>(samples.size());
  state.counters["p50_ns"] = bench::Quantile(samples, 0.5);
  state.counters["p99_ns"] = bench::Quantile(samples, 0.99);
  state.counters["p99.9_ns"] = bench::Quantile(samples, 0.999);
  state.counters["free_p99_ns"] = bench::Quantile(Samples(report.free_ns, 1), 0.99);
  state.counters["forced_evictions"] = static_cast<double>(report.forced_evictions);
  state.counters["failures"] = static_cast<double>(report.failures);
  state.counters["moved_GiB"] = static_cast<double>(report.moved_bytes) / static_cast<double>(kGiB);
  if (target.capacity() > 0) state.counters["fragmented_share"] = report.mean_fragmented_share;
  Reports()[name] = std::move(report);
}

void Pool(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    ArenaAllocator arena(std::make_unique<TieredPlacement>(kGpuBytes, PartitionSizes{}));
    ArenaTarget target(arena);
    ReplayOnce(state, "pool of two tiers", target);
  }
}
BENCHMARK(Pool)->UseManualTime()->Iterations(3)->Unit(benchmark::kMillisecond);

std::string DriverFolder() {
  const char* const folder = std::getenv("TORPOR_BENCH_DRIVER_DIR");
  return folder == nullptr ? TORPOR_BENCH_EMULATOR_DIR : folder;
}

void SinglePoolOverDriver(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    DriverMemory driver(DriverFolder(), kGpuBytes);
    ArenaAllocator arena(std::make_unique<SinglePool>(std::make_unique<DriverSource>(driver)));
    ArenaTarget target(arena, /*knows_free=*/false);
    ReplayOnce(state, "single pool", target);
  }
}
BENCHMARK(SinglePoolOverDriver)->UseManualTime()->Iterations(3)->Unit(benchmark::kMillisecond);

// The same search without the driver's calls.
void SinglePoolOverArena(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    ArenaAllocator arena(std::make_unique<SinglePool>(std::make_unique<ArenaSource>(kGpuBytes)));
    ArenaTarget target(arena);
    ReplayOnce(state, "single pool, driver at no cost", target);
  }
}
BENCHMARK(SinglePoolOverArena)->UseManualTime()->Iterations(3)->Unit(benchmark::kMillisecond);

void Driver(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    DriverMemory driver(DriverFolder(), kGpuBytes);
    DriverTarget target(driver);
    ReplayOnce(state, "cuMemAlloc, cuMemFree", target);
  }
}
BENCHMARK(Driver)->UseManualTime()->Iterations(3)->Unit(benchmark::kMillisecond);

// The paper's own figure: a request's allocations, over the inference that they are for.
std::vector<double> OverInference(const std::vector<ReplayedLoad>& loads) {
  std::vector<double> samples;
  for (const ReplayedLoad& load : loads) {
    const ModelShape& model = PaperModels()[load.function % PaperModels().size()];
    samples.push_back(static_cast<double>(load.nanoseconds) * 1e-6 / model.inference_ms);
  }
  return samples;
}

void WritePlots() {
  bench::CdfPlot blocks{"Allocating a block", "nanoseconds", true, {}};
  bench::CdfPlot loads{"Allocating a request's blocks", "share of the inference's time", true, {}};
  for (const auto& [name, report] : Reports()) {
    blocks.series.push_back({name, Samples(report.allocation_ns, 1)});
    loads.series.push_back({name, OverInference(report.loads)});
  }
  bench::WritePlot("allocation_latency", blocks);
  bench::WritePlot("allocation_over_inference", loads);
}

}  // namespace
}  // namespace torpor::memory

int main(int argc, char** argv) {
  // The emulated GPU takes host memory as it is touched, which allocating does not.
  setenv("TORPOR_EMULATOR_MEMORY", "32GiB", 0);
  if (const int status = torpor::bench::RunBenchmarks(argc, argv); status != 0) return status;
  torpor::memory::WritePlots();
  return 0;
}
