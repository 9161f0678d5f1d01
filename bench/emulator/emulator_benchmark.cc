// The emulated GPU against native C++ on the same cores, in the same run.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

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

struct VectorArguments {
  const float* a;
  const float* b;
  float* c;
  int n;
};

constexpr std::size_t kVector = std::size_t{1} << 24;

void CountVector(benchmark::State& state) {
  const auto elements = static_cast<double>(state.iterations()) * kVector;
  state.counters["Gelem/s"] = benchmark::Counter(elements / 1e9, benchmark::Counter::kIsRate);
  state.counters["GB/s"] = benchmark::Counter(elements * 12 / 1e9, benchmark::Counter::kIsRate);
}

void VectorAddNative(benchmark::State& state) {
  Bench bench;
  const VectorArguments v = {bench.Array(kVector), bench.Array(kVector), bench.Array(kVector),
                             static_cast<int>(kVector)};
  for (auto _ : state) {
    OnAllCores(kVector, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) v.c[i] = v.a[i] + v.b[i];
    });
    benchmark::ClobberMemory();
  }
  CountVector(state);
}

void VectorAddEmulated(benchmark::State& state) {
  Bench bench;
  const VectorArguments v = {bench.Array(kVector), bench.Array(kVector), bench.Array(kVector),
                             static_cast<int>(kVector)};
  const auto block = static_cast<std::uint32_t>(state.range(0));
  for (auto _ : state)
    bench.Run("vector_add", {static_cast<std::uint32_t>(kVector) / block, 1, 1}, {block, 1, 1}, v);
  CountVector(state);
}

constexpr std::size_t kMatrix = 512;

void CountMatrix(benchmark::State& state) {
  const double operations = 2.0 * kMatrix * kMatrix * kMatrix;
  state.counters["GFLOP/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * operations / 1e9, benchmark::Counter::kIsRate);
}

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

VectorArguments Matrices(Bench& bench) {
  constexpr std::size_t kSize = kMatrix * kMatrix;
  return {bench.Array(kSize), bench.Array(kSize), bench.Array(kSize), static_cast<int>(kMatrix)};
}

void MatrixMultiplyNative(benchmark::State& state) {
  Bench bench;
  const VectorArguments v = Matrices(bench);
  for (auto _ : state) {
    OnAllCores(kMatrix, [&](std::size_t begin, std::size_t end) { MultiplyRows(v, begin, end); });
    benchmark::ClobberMemory();
  }
  CountMatrix(state);
}

void MatrixMultiplyEmulated(benchmark::State& state) {
  Bench bench;
  const VectorArguments v = Matrices(bench);
  const auto tile = static_cast<std::uint32_t>(state.range(0));
  const char* const kernel = tile == 16 ? "multiply_16" : "multiply_32";
  const std::uint32_t blocks = kMatrix / tile;
  for (auto _ : state) bench.Run(kernel, {blocks, blocks, 1}, {tile, tile, 1}, v);
  CountMatrix(state);
}

void ReduceEmulated(benchmark::State& state) {
  Bench bench;
  struct {
    const float* in;
    float* out;
    int n;
  } arguments = {bench.Array(kVector), bench.Array(64), static_cast<int>(kVector)};
  for (auto _ : state) bench.Run("reduce", {64, 1, 1}, {256, 1, 1}, arguments);
  CountVector(state);
}

void EmptyLaunch(benchmark::State& state) {
  Bench bench;
  const int nothing = 0;
  for (auto _ : state) bench.Run("empty", {1, 1, 1}, {32, 1, 1}, nothing);
}

BENCHMARK(VectorAddNative)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(VectorAddEmulated)->Arg(256)->Arg(1024)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(MatrixMultiplyNative)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(MatrixMultiplyEmulated)->Arg(16)->Arg(32)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(ReduceEmulated)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(EmptyLaunch)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace torpor::emulator

BENCHMARK_MAIN();
