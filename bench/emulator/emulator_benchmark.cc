// The emulated GPU against native C++ on the same cores, in the same run.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "bench/emulator/comparison.h"
#include "bench/emulator/emulated_gpu.h"
#include "bench/emulator/native_kernels.h"
#include "bench/run_benchmarks.h"

namespace torpor::emulator {
namespace {

constexpr std::size_t kVector = std::size_t{1} << 24;
constexpr std::size_t kPlane = 4096;   // rows and columns
constexpr std::size_t kMatrix = 512;   // rows and columns
constexpr std::uint32_t kBlock = 256;  // threads

template <typename In, typename Out>
struct UnaryArguments {
  const In* in;
  Out* out;
  int n;
};

struct BinaryArguments {
  const float* a;
  const float* b;
  float* c;
  int n;
};

struct GatherArguments {
  const float* in;
  const std::int32_t* index;
  float* out;
  int n;
};

UnaryArguments<float, float> FloatsToFloats(EmulatedGpu& gpu, std::size_t size, std::size_t n) {
  return {gpu.Array(size), gpu.Array(size), static_cast<int>(n)};
}

// Words that spread evenly over their range, the same in every run.
UnaryArguments<std::uint32_t, std::uint32_t> WordsToWords(EmulatedGpu& gpu, std::size_t n,
                                                          std::uint32_t range) {
  auto* const in = reinterpret_cast<std::uint32_t*>(gpu.Array(n));
  for (std::size_t i = 0; i < n; ++i) {
    in[i] = static_cast<std::uint32_t>(i) * 2654435761U % range;
  }
  return {in, reinterpret_cast<std::uint32_t*>(gpu.Array(n)), static_cast<int>(n)};
}

BinaryArguments TwoFloatsToFloats(EmulatedGpu& gpu, std::size_t size, std::size_t n) {
  return {gpu.Array(size), gpu.Array(size), gpu.Array(size), static_cast<int>(n)};
}

constexpr std::uint32_t BlocksOf(std::size_t n, std::uint32_t block) {
  return static_cast<std::uint32_t>(n / block);
}

void VectorAdd(benchmark::State& state) {
  EmulatedGpu gpu;
  const auto v = TwoFloatsToFloats(gpu, kVector, kVector);
  const auto block = static_cast<std::uint32_t>(state.range(0));
  Compare(
      state, "GB/s", kVector * 12 / 1e9,
      [&] { gpu.Run("vector_add", {BlocksOf(kVector, block)}, {block}, v); },
      [&] { native::VectorAdd(v.a, v.b, v.c, kVector); });
}

void Axpy(benchmark::State& state) {
  EmulatedGpu gpu;
  const auto v = TwoFloatsToFloats(gpu, kVector, kVector);
  Compare(
      state, "GB/s", kVector * 12 / 1e9, [&] { gpu.Run("axpy", {64}, {kBlock}, v); },
      [&] { native::Axpy(v.a, v.b, v.c, kVector); });
}

void Logistic(benchmark::State& state) {
  EmulatedGpu gpu;
  constexpr std::size_t kElements = kVector / 16;
  const auto v = TwoFloatsToFloats(gpu, kElements, kElements);
  Compare(
      state, "Gelem/s", kElements / 1e9,
      [&] { gpu.Run("logistic", {BlocksOf(kElements, kBlock)}, {kBlock}, v); },
      [&] { native::Logistic(v.a, v.b, v.c, kElements); });
}

void Reduce(benchmark::State& state, const char* kernel, std::uint32_t blocks) {
  EmulatedGpu gpu;
  const auto v = FloatsToFloats(gpu, kVector, kVector);
  Compare(
      state, "GB/s", kVector * 4 / 1e9, [&] { gpu.Run(kernel, {blocks}, {kBlock}, v); },
      [&] { benchmark::DoNotOptimize(native::Reduce(v.in, kVector)); });
}

void Transpose(benchmark::State& state, const char* kernel, Dim3 block) {
  EmulatedGpu gpu;
  const auto v = FloatsToFloats(gpu, kPlane * kPlane, kPlane);
  const std::uint32_t tiles = kPlane / block.x;
  Compare(
      state, "GB/s", kPlane * kPlane * 8 / 1e9,
      [&] {
        gpu.Run(kernel, {tiles, tiles}, block, v);
      },
      [&] { native::Transpose(v.in, v.out, kPlane); });
}

void Stencil(benchmark::State& state) {
  EmulatedGpu gpu;
  const auto v = FloatsToFloats(gpu, kPlane * kPlane, kPlane);
  Compare(
      state, "GB/s", kPlane * kPlane * 8 / 1e9,
      [&] {
        gpu.Run("stencil", {kPlane / 32, kPlane / 8}, {32, 8}, v);
      },
      [&] { native::Stencil(v.in, v.out, kPlane); });
}

void Gather(benchmark::State& state) {
  EmulatedGpu gpu;
  constexpr std::size_t kElements = kVector / 4;
  const auto words = WordsToWords(gpu, kElements, kElements);
  const GatherArguments v = {gpu.Array(kElements), reinterpret_cast<const std::int32_t*>(words.in),
                             gpu.Array(kElements), static_cast<int>(kElements)};
  Compare(
      state, "Gelem/s", kElements / 1e9,
      [&] { gpu.Run("gather", {BlocksOf(kElements, kBlock)}, {kBlock}, v); },
      [&] { native::Gather(v.in, v.index, v.out, kElements); });
}

void Histogram(benchmark::State& state) {
  EmulatedGpu gpu;
  const auto v = WordsToWords(gpu, kVector, 1U << 20);
  Compare(
      state, "Gelem/s", kVector / 1e9, [&] { gpu.Run("histogram", {64}, {kBlock}, v); },
      [&] { native::Histogram(v.in, v.out, kVector); });
}

void Collatz(benchmark::State& state) {
  EmulatedGpu gpu;
  constexpr std::size_t kElements = kVector / 64;
  const auto v = WordsToWords(gpu, kElements, 1U << 20);
  Compare(
      state, "Gelem/s", kElements / 1e9,
      [&] { gpu.Run("collatz", {BlocksOf(kElements, kBlock)}, {kBlock}, v); },
      [&] { native::Collatz(v.in, v.out, kElements); });
}

void MatrixMultiply(benchmark::State& state) {
  EmulatedGpu gpu;
  const auto v = TwoFloatsToFloats(gpu, kMatrix * kMatrix, kMatrix);
  const auto tile = static_cast<std::uint32_t>(state.range(0));
  const char* const kernel = tile == 16 ? "multiply_16" : "multiply_32";
  const std::uint32_t blocks = kMatrix / tile;
  Compare(
      state, "GFLOP/s", 2.0 * kMatrix * kMatrix * kMatrix / 1e9,
      [&] {
        gpu.Run(kernel, {blocks, blocks}, {tile, tile}, v);
      },
      [&] { native::Multiply(v.a, v.b, v.c, kMatrix); });
}

void EmptyLaunch(benchmark::State& state) {
  EmulatedGpu gpu;
  const auto blocks = static_cast<std::uint32_t>(state.range(0));
  const int nothing = 0;
  for (auto _ : state) gpu.Run("empty", {blocks}, {32}, nothing);
}

// Loads the module and runs one kernel of about a hundred instructions, as a new process does.
void FirstResult(benchmark::State& state) {
  for (auto _ : state) {
    EmulatedGpu gpu;
    state.PauseTiming();
    const auto v = TwoFloatsToFloats(gpu, 256, 16);
    state.ResumeTiming();
    gpu.Run("multiply_16", {1, 1}, {16, 16}, v);
  }
}

void FirstResultCompiled(benchmark::State& state) {
  setenv("TORPOR_EMULATOR_CACHE_DIR", "", 1);
  FirstResult(state);
  unsetenv("TORPOR_EMULATOR_CACHE_DIR");
}

BENCHMARK(VectorAdd)->Arg(256)->Arg(1024)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(Axpy)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(Logistic)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Reduce, tree, "reduce", 64)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Reduce, shuffle, "reduce_shuffle", BlocksOf(kVector, 2 * kBlock))
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Transpose, naive, "transpose_naive", Dim3{16, 16})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Transpose, tiled, "transpose_tiled", Dim3{32, 8})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(Stencil)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(Gather)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(Histogram)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(Collatz)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(MatrixMultiply)->Arg(16)->Arg(32)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(EmptyLaunch)->Arg(1)->Arg(16)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(FirstResultCompiled)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(FirstResult)->Name("FirstResultCached")->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace torpor::emulator

// Idle threads of OpenMP would spin and take cores from the emulator. The library reads its
// environment before main does, so that the program starts anew.
int main(int argc, char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) {
    setenv("OMP_WAIT_POLICY", "passive", 1);
    execv("/proc/self/exe", argv);
  }
  return torpor::bench::RunBenchmarks(argc, argv);
}
