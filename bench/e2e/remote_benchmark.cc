// What CUDA calls cost a program that torpord serves: torpord, torpor-executor and the client
// libraries are the real ones, the GPU is emulated. With TORPOR_SOCKET set it is that daemon that
// is measured instead, on whatever GPU it has.
#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>
#include <linux/futex.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "bench/e2e/kernels.h"
#include "tests/e2e/emulated_node.h"

namespace torpor::bench {
namespace {

constexpr std::int64_t kLaunches = 10'000;
constexpr unsigned kOneLayer = 1;

void Check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
  std::exit(1);
}

void* DeviceBuffer(std::size_t bytes) {
  void* buffer = nullptr;
  Check(cudaMalloc(&buffer, bytes));
  return buffer;
}

// kLaunches kernels, asynchronous calls of `kernels_per_call` each, and a call that waits for all.
// The time is from the first call to the last kernel's completion, and a call in `s_per_call` is a
// kernel's; client_us is how long each kernel kept the program.
template <typename Call>
void LongBatch(benchmark::State& state, const Call& call, std::int64_t kernels_per_call = 1) {
  call();
  Check(cudaDeviceSynchronize());
  double in_client = 0;
  for ([[maybe_unused]] auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < kLaunches; i += kernels_per_call) call();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    in_client += took.count();
    Check(cudaDeviceSynchronize());
  }
  Check(cudaGetLastError());
  const auto calls = static_cast<double>(state.iterations() * kLaunches);
  state.counters["client_us"] = in_client * 1e6 / calls;
  state.counters["s_per_call"] =
      benchmark::Counter(calls, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// Encoded, sent, decoded and checked: all but the emulated kernel.
void LaunchesWithoutKernel(benchmark::State& state) {
  void* const buffer = DeviceBuffer(256);
  LongBatch(state, [=] { LaunchEmpty(buffer, kSkippedLayers); });
  Check(cudaFree(buffer));
}

// The same with the emulator's empty kernel, one block of one warp.
void LaunchesOfEmptyKernel(benchmark::State& state) {
  void* const buffer = DeviceBuffer(256);
  LongBatch(state, [=] { LaunchEmpty(buffer, kOneLayer); });
  Check(cudaFree(buffer));
}

// A graph of kNodes kernels, each after the one before.
class KernelGraph {
 public:
  static constexpr std::int64_t kNodes = 1000;

  explicit KernelGraph(void* pointer) {
    Check(cudaStreamCreate(&stream_));
    Check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    for (std::int64_t i = 0; i < kNodes; ++i) LaunchEmpty(pointer, kSkippedLayers, stream_);
    Check(cudaStreamEndCapture(stream_, &graph_));
    Check(cudaGraphInstantiate(&exec_, graph_, 0));
    std::size_t one = 1;
    Check(cudaGraphGetRootNodes(graph_, &first_, &one));
    Check(cudaGraphKernelNodeGetParams(first_, &parameters_));
  }
  ~KernelGraph() {
    Check(cudaGraphExecDestroy(exec_));
    Check(cudaGraphDestroy(graph_));
    Check(cudaStreamDestroy(stream_));
  }
  KernelGraph(const KernelGraph&) = delete;
  KernelGraph& operator=(const KernelGraph&) = delete;

  void Launch() { Check(cudaGraphLaunch(exec_, stream_)); }
  // Gives one kernel another size, as programs do between launches.
  void Change() {
    parameters_.gridDim.x = 3 - parameters_.gridDim.x;
    Check(cudaGraphExecKernelNodeSetParams(exec_, first_, &parameters_));
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  cudaGraphNode_t first_ = nullptr;
  cudaKernelNodeParams parameters_{};
};

void GraphsOfLaunches(benchmark::State& state) {
  void* const buffer = DeviceBuffer(256);
  KernelGraph graph(buffer);
  LongBatch(
      state, [&] { graph.Launch(); }, KernelGraph::kNodes);
  Check(cudaFree(buffer));
}

void GraphsChangedBeforeEachLaunch(benchmark::State& state) {
  void* const buffer = DeviceBuffer(256);
  KernelGraph graph(buffer);
  const auto launch_changed = [&] {
    graph.Change();
    graph.Launch();
  };
  LongBatch(state, launch_changed, KernelGraph::kNodes);
  Check(cudaFree(buffer));
}

void SynchronizeIdleStream(benchmark::State& state) {
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreate(&stream));
  for ([[maybe_unused]] auto _ : state) Check(cudaStreamSynchronize(stream));
  Check(cudaStreamDestroy(stream));
}

// Times each round trip, after a pause in which the other side falls asleep if `pauses`. The median
// is the counter p50_us.
template <typename Call>
void RoundTrips(benchmark::State& state, bool pauses, const Call& call) {
  constexpr std::chrono::milliseconds kPause{2};
  std::vector<double> took_us;
  for ([[maybe_unused]] auto _ : state) {
    if (pauses) std::this_thread::sleep_for(kPause);
    const auto begin = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    state.SetIterationTime(took.count());
    took_us.push_back(took.count() * 1e6);
  }
  const auto middle = took_us.begin() + static_cast<std::ptrdiff_t>(took_us.size() / 2);
  std::nth_element(took_us.begin(), middle, took_us.end());
  state.counters["p50_us"] = *middle;
}

void Download(benchmark::State& state, bool pauses) {
  void* const device = DeviceBuffer(4);
  int host = 0;
  RoundTrips(state, pauses,
             [&] { Check(cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost)); });
  Check(cudaFree(device));
}
void DownloadFourBytes(benchmark::State& state) { Download(state, false); }
void DownloadFourBytesAfterPause(benchmark::State& state) { Download(state, true); }

// The baseline of a round trip: two threads that do nothing but sleep on a futex and wake each
// other.
class FutexPair {
 public:
  FutexPair() : echo_([this] { Echo(); }) {}
  ~FutexPair() {
    Set(ping_, kStop);
    echo_.join();
  }
  void RoundTrip() {
    Set(ping_, kSet);
    Take(pong_);
  }

 private:
  using Word = std::atomic<std::uint32_t>;
  static constexpr std::uint32_t kClear = 0;
  static constexpr std::uint32_t kSet = 1;
  static constexpr std::uint32_t kStop = 2;

  static void Set(Word& word, std::uint32_t value) {
    word.store(value);
    syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
  static std::uint32_t Take(Word& word) {
    while (word.load() == kClear)
      syscall(SYS_futex, &word, FUTEX_WAIT, kClear, nullptr, nullptr, 0);
    return word.exchange(kClear);
  }
  void Echo() {
    while (Take(ping_) == kSet) Set(pong_, kSet);
  }

  Word ping_{kClear};
  Word pong_{kClear};
  std::thread echo_;
};

void FutexPingPong(benchmark::State& state) {
  FutexPair pair;
  RoundTrips(state, false, [&] { pair.RoundTrip(); });
}
void FutexPingPongAfterPause(benchmark::State& state) {
  FutexPair pair;
  RoundTrips(state, true, [&] { pair.RoundTrip(); });
}

struct Pageable {
  explicit Pageable(std::size_t bytes) : bytes_(bytes) {}
  void* data() { return bytes_.data(); }

 private:
  std::vector<char> bytes_;
};

struct Pinned {
  explicit Pinned(std::size_t bytes) {
    Check(cudaMallocHost(&data_, bytes));
    std::memset(data_, 0, bytes);
  }
  ~Pinned() { Check(cudaFreeHost(data_)); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  void* data() { return data_; }

 private:
  void* data_ = nullptr;
};

template <typename Host>
void Transfer(benchmark::State& state, cudaMemcpyKind kind) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  Host host(bytes);
  void* const device = DeviceBuffer(bytes);
  void* const to = kind == cudaMemcpyHostToDevice ? device : host.data();
  const void* const from = kind == cudaMemcpyHostToDevice ? host.data() : device;
  Check(cudaMemcpy(to, from, bytes, kind));  // the pages come into being
  for ([[maybe_unused]] auto _ : state) {
    Check(cudaMemcpy(to, from, bytes, kind));
    Check(cudaDeviceSynchronize());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
  Check(cudaFree(device));
}

void UploadPageable(benchmark::State& state) { Transfer<Pageable>(state, cudaMemcpyHostToDevice); }
void UploadPinned(benchmark::State& state) { Transfer<Pinned>(state, cudaMemcpyHostToDevice); }
void DownloadPageable(benchmark::State& state) {
  Transfer<Pageable>(state, cudaMemcpyDeviceToHost);
}
void DownloadPinned(benchmark::State& state) { Transfer<Pinned>(state, cudaMemcpyDeviceToHost); }

void PlainMemcpy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  Pageable from(bytes);
  Pageable to(bytes);
  for ([[maybe_unused]] auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  constexpr std::int64_t kMiB = 1 << 20;
  benchmark->RangeMultiplier(4)->Range(kMiB, 256 * kMiB)->UseRealTime();
}

void Pausing(benchmark::internal::Benchmark* benchmark) {
  constexpr int kRoundTrips = 500;
  benchmark->Iterations(kRoundTrips)->UseManualTime();
}

BENCHMARK(LaunchesWithoutKernel)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(LaunchesOfEmptyKernel)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(GraphsOfLaunches)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(GraphsChangedBeforeEachLaunch)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(SynchronizeIdleStream)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(DownloadFourBytes)->Unit(benchmark::kMicrosecond)->UseManualTime();
BENCHMARK(DownloadFourBytesAfterPause)->Unit(benchmark::kMicrosecond)->Apply(Pausing);
BENCHMARK(FutexPingPong)->Unit(benchmark::kMicrosecond)->UseManualTime();
BENCHMARK(FutexPingPongAfterPause)->Unit(benchmark::kMicrosecond)->Apply(Pausing);
BENCHMARK(PlainMemcpy)->Apply(Sizes);
BENCHMARK(UploadPageable)->Apply(Sizes);
BENCHMARK(UploadPinned)->Apply(Sizes);
BENCHMARK(DownloadPageable)->Apply(Sizes);
BENCHMARK(DownloadPinned)->Apply(Sizes);

constexpr const char* kTopology = R"(version: v1
gpus:
  - memory: 1536MiB
)";

// A process has one session and ends it before its daemon ends, so the benchmarks run in a
// process of their own.
int RunUnderPrivateNode(char** arguments) {
  e2e::EmulatedNode node(kTopology, {"bench"},
                         std::string("cuda_library_dir: ") + TORPOR_BENCH_DRIVER_DIR + "\n");
  node.Start();
  const std::string folder = node.folder().path();
  setenv("TORPOR_SOCKET", (folder + "/functions/torpor.sock").c_str(), 1);
  setenv("TORPOR_TOKEN_FILE", (folder + "/0.token").c_str(), 1);
  pid_t child = -1;
  int status = 1;
  if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ) != 0) return 1;
  waitpid(child, &status, 0);
  if (status != 0) std::fputs(node.Logs().c_str(), stderr);
  return status == 0 ? 0 : 1;
}

int Main(int count, char** arguments) {
  if (std::getenv("TORPOR_SOCKET") == nullptr) return RunUnderPrivateNode(arguments);
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace torpor::bench

int main(int count, char** arguments) { return torpor::bench::Main(count, arguments); }
