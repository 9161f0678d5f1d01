// The emulated GPU against native C++ on the same cores, in the same run.
#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <time.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "emulator/exec/program.h"

namespace torpor::emulator {
namespace {

// A window that is all memory: what is measured here is neither allocation nor faults.
class FlatMemory : public DeviceMemory {
 public:
  static constexpr Bytes kBytes = kGiB;

  FlatMemory() {
    void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    begin_ = next_ = reinterpret_cast<std::uint64_t>(memory);
  }
  ~FlatMemory() override { munmap(reinterpret_cast<void*>(begin_), kBytes); }

  std::uint64_t window_begin() const override { return begin_; }
  std::uint64_t window_end() const override { return begin_ + kBytes; }
  bool IsAccessible(std::uint64_t, Bytes) const override { return false; }
  ExecResult<std::uint64_t> Allocate(Bytes size) override {
    const std::uint64_t address = next_;
    next_ += RoundUp(size, 4096);
    return address;
  }
  void Free(std::uint64_t) override {}

 private:
  std::uint64_t begin_ = 0;
  std::uint64_t next_ = 0;
};

class Bench {
 public:
  Bench() {
    std::ifstream file(TORPOR_BENCH_PTX);
    const std::string ptx{std::istreambuf_iterator<char>(file), {}};
    auto loaded = Program::Load(ptx, memory_, DeviceTraits{});
    if (!loaded) Fail(loaded.failure().message);
    program_ = std::move(*loaded);
  }

  void Preload(const char* kernel, Dim3 block) {
    const auto result = program_->Preload(kernel, block);
    if (!result) Fail(result.failure().message);
  }

  float* Array(std::size_t size) {
    auto* const data = reinterpret_cast<float*>(*memory_.Allocate(size * sizeof(float)));
    for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<float>(i % 7);
    return data;
  }

  template <typename Arguments>
  void Run(const char* kernel, Dim3 grid, Dim3 block, const Arguments& arguments) {
    LaunchConfig config;
    config.grid = grid;
    config.block = block;
    config.parameters = &arguments;
    const auto result = program_->Launch(kernel, config);
    if (!result) Fail(result.failure().message);
  }

 private:
  [[noreturn]] static void Fail(const std::string& message) {
    std::fprintf(stderr, "%s\n", message.c_str());
    std::abort();
  }

  FlatMemory memory_;
  std::unique_ptr<Program> program_;
};

// As many threads as the emulator uses, each with its share of [0, total).
template <typename Body>
void OnAllCores(std::size_t total, const Body& body) {
  const std::size_t cores = std::thread::hardware_concurrency();
  std::vector<std::thread> threads;
  for (std::size_t core = 0; core < cores; ++core) {
    threads.emplace_back([&, core] { body(total * core / cores, total * (core + 1) / cores); });
  }
  for (std::thread& thread : threads) thread.join();
}

double Seconds(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// What one side of a comparison has taken.
struct Spent {
  double wall = 0;
  double cores = 0;  // of all threads together, so that it tells the same on a busy machine

  template <typename Body>
  double Measure(const Body& body) {
    const double wall_before = Seconds(CLOCK_MONOTONIC);
    const double cores_before = Seconds(CLOCK_PROCESS_CPUTIME_ID);
    body();
    const double took = Seconds(CLOCK_MONOTONIC) - wall_before;
    cores += Seconds(CLOCK_PROCESS_CPUTIME_ID) - cores_before;
    wall += took;
    return took;
  }
};

// The emulator and native code by turns, so that what else the machine does slows both. The
// benchmark's time is the emulator's. `amount` is what a round does, in units of 1e9.
template <typename Emulated, typename Native>
void Compare(benchmark::State& state, const std::string& unit, double amount,
             const Emulated& emulated, const Native& native) {
  Spent ours;
  Spent theirs;
  emulated();  // compiles
  native();
  for (auto _ : state) {
    state.SetIterationTime(ours.Measure(emulated));
    theirs.Measure(native);
    benchmark::ClobberMemory();
  }
  const double total = amount * static_cast<double>(state.iterations());
  state.counters[unit] = total / ours.wall;
  state.counters[unit + "/core"] = total / ours.cores;
  state.counters["native " + unit] = total / theirs.wall;
  state.counters["native " + unit + "/core"] = total / theirs.cores;
  state.counters["of_native"] = theirs.wall / ours.wall;
  state.counters["of_native/core"] = theirs.cores / ours.cores;
}

struct VectorArguments {
  const float* a;
  const float* b;
  float* c;
  int n;
};

constexpr std::size_t kVector = std::size_t{1} << 24;

void VectorAdd(benchmark::State& state) {
  Bench bench;
  const VectorArguments v = {bench.Array(kVector), bench.Array(kVector), bench.Array(kVector),
                             static_cast<int>(kVector)};
  const auto block = static_cast<std::uint32_t>(state.range(0));
  const Dim3 grid = {static_cast<std::uint32_t>(kVector) / block, 1, 1};
  const auto add = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) v.c[i] = v.a[i] + v.b[i];
  };
  Compare(
      state, "GB/s", kVector * 12 / 1e9,
      [&] {
        bench.Run("vector_add", grid, {block, 1, 1}, v);
      },
      [&] { OnAllCores(kVector, add); });
}

constexpr std::size_t kMatrix = 512;

// The same tiling, as a C++ programmer would write it.
void MultiplyRows(const VectorArguments& v, std::size_t begin, std::size_t end) {
  constexpr std::size_t kTile = 32;
  for (std::size_t row = begin; row < end; ++row) {
    for (std::size_t j = 0; j < kMatrix; ++j) v.c[row * kMatrix + j] = 0;
    for (std::size_t k = 0; k < kMatrix; k += kTile) {
      for (std::size_t i = k; i < k + kTile; ++i) {
        const float x = v.a[row * kMatrix + i];
        for (std::size_t j = 0; j < kMatrix; ++j) {
          v.c[row * kMatrix + j] += x * v.b[i * kMatrix + j];
        }
      }
    }
  }
}

void MatrixMultiply(benchmark::State& state) {
  Bench bench;
  constexpr std::size_t kSize = kMatrix * kMatrix;
  const VectorArguments v = {bench.Array(kSize), bench.Array(kSize), bench.Array(kSize),
                             static_cast<int>(kMatrix)};
  const auto tile = static_cast<std::uint32_t>(state.range(0));
  const char* const kernel = tile == 16 ? "multiply_16" : "multiply_32";
  const std::uint32_t blocks = kMatrix / tile;
  Compare(
      state, "GFLOP/s", 2.0 * kMatrix * kMatrix * kMatrix / 1e9,
      [&] {
        bench.Run(kernel, {blocks, blocks, 1}, {tile, tile, 1}, v);
      },
      [&] {
        OnAllCores(kMatrix,
                   [&](std::size_t begin, std::size_t end) { MultiplyRows(v, begin, end); });
      });
}

// Special functions; the host calls its libm.
void Logistic(benchmark::State& state) {
  Bench bench;
  constexpr std::size_t kElements = kVector / 16;
  const VectorArguments v = {bench.Array(kElements), bench.Array(kElements), bench.Array(kElements),
                             static_cast<int>(kElements)};
  const auto compute = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      v.c[i] = std::log(1 + std::exp(-v.a[i])) * std::sqrt(v.b[i]);
    }
  };
  Compare(
      state, "Gelem/s", kElements / 1e9,
      [&] {
        bench.Run("logistic", {static_cast<std::uint32_t>(kElements / 256), 1, 1}, {256, 1, 1}, v);
      },
      [&] { OnAllCores(kElements, compute); });
}

void Reduce(benchmark::State& state) {
  Bench bench;
  struct {
    const float* in;
    float* out;
    int n;
  } arguments = {bench.Array(kVector), bench.Array(64), static_cast<int>(kVector)};
  for (auto _ : state) bench.Run("reduce", {64, 1, 1}, {256, 1, 1}, arguments);
  state.counters["GB/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * kVector * 4 / 1e9, benchmark::Counter::kIsRate);
}

void EmptyLaunch(benchmark::State& state) {
  Bench bench;
  const auto blocks = static_cast<std::uint32_t>(state.range(0));
  const int nothing = 0;
  for (auto _ : state) bench.Run("empty", {blocks, 1, 1}, {32, 1, 1}, nothing);
}

// Loads the module and compiles one kernel, as its first launch in a process does.
void Compile(benchmark::State& state) {
  setenv("TORPOR_EMULATOR_CACHE_DIR", "", 1);
  for (auto _ : state) {
    Bench bench;
    bench.Preload("multiply_16", {16, 16, 1});
  }
  unsetenv("TORPOR_EMULATOR_CACHE_DIR");
}

BENCHMARK(VectorAdd)->Arg(256)->Arg(1024)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(MatrixMultiply)->Arg(16)->Arg(32)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(Logistic)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(Reduce)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(EmptyLaunch)->Arg(1)->Arg(16)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(Compile)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace torpor::emulator

BENCHMARK_MAIN();
