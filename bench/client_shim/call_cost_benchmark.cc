#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <vector>

#include "client_shim/core/session/device_session.h"
#include "client_shim/core/session/process_state.h"
#include "proto/cuda_api/cublas_commands.h"
#include "proto/cuda_api/cudart_dispatch.h"
#include "proto/cuda_api/fake_cudart_handler.h"
#include "tests/client_shim/fake_daemon.h"
#include "tests/client_shim/fake_executor.h"
#include "tools/plot/plot_data.h"

// What one asynchronous call costs on its way: encoded in the client, appended to the session's
// batch, decoded and handed to its method in the executor. The CPU column is the calling thread's.
namespace torpor {
namespace {

constexpr std::size_t kParameterBytes = 64;
constexpr int kWarmUps = 2;

wire::LaunchKernel Launch() {
  static constexpr std::array<std::uint8_t, kParameterBytes> kParameters{1, 2, 3};
  return {.kernel = 5,
          .stream = 6,
          .grid = {128, 1, 1},
          .block = {256, 1, 1},
          .shared_bytes = 0,
          .flags = 0,
          .parameters = kParameters};
}

// Into a buffer that is kept from call to call, as the client does it.
template <typename Command>
void Encode(const Command& command, std::vector<std::uint8_t>& fields) {
  fields.clear();
  wire::Writer{fields}(command);
}

template <typename Command>
void EncodeAll(benchmark::State& state, const Command& command) {
  std::vector<std::uint8_t> fields;
  for (auto _ : state) {
    Encode(command, fields);
    benchmark::DoNotOptimize(fields.data());
  }
}

void EncodeLaunch(benchmark::State& state) { EncodeAll(state, Launch()); }
BENCHMARK(EncodeLaunch);

void EncodeGemm(benchmark::State& state) { EncodeAll(state, wire::CublasGemmStridedBatchedEx{}); }
BENCHMARK(EncodeGemm);

class CountingHandler : public cuda_api::FakeCudartHandler {
 public:
  cuda_api::CallStatus LaunchKernel(const wire::LaunchKernel& command) override {
    bytes += command.parameters.size();
    return {};
  }
  std::size_t bytes = 0;
};

void DispatchLaunch(benchmark::State& state) {
  const std::vector<std::uint8_t> fields = wire::Encoded(Launch());
  CountingHandler handler;
  const cuda_api::CudartHandlers handlers = handler.handlers();
  cuda_api::CallOutcome outcome;
  for (auto _ : state) {
    if (!cuda_api::DispatchCudart(handlers, wire::LaunchKernel::kCallId, fields, outcome).ok())
      std::abort();
  }
  benchmark::DoNotOptimize(handler.bytes);
}
BENCHMARK(DispatchLaunch);

// A session against a daemon and an executor in this process that do nothing but keep commands.
class OpenSession {
 public:
  // `is_recorded`: for a replay after an executor's death.
  explicit OpenSession(bool is_recorded = false) : daemon_({.replays = is_recorded}) {
    settings_.socket = daemon_.socket();
    settings_.lease_idle = std::chrono::hours(1);
    if (session.Start() != cudaSuccess) std::abort();
    lease_ = daemon_.Grant(executor_, /*is_explicit=*/true);
    daemon_.Await<wire::LeaseAck>();
    Synchronize();
  }
  void Synchronize() {
    shim::CallReply reply;
    if (session.Call({wire::DeviceSynchronize::kCallId, {}}, reply) != cudaSuccess) std::abort();
  }
  // A new lease, under which the work up to `command` need not be replayed.
  void Save(std::uint64_t command) {
    daemon_.Send(wire::LeaseRevoke{lease_});
    daemon_.Await<wire::LeaseReturned>();
    lease_ = daemon_.Grant(executor_, /*is_explicit=*/true, command);
    daemon_.Await<wire::LeaseAck>();
  }

 private:
  testing::FakeDaemon daemon_;
  testing::FakeExecutor executor_{
      daemon_.folder() + "/executor.sock",
      {static_cast<std::uint32_t>(wire::ProtocolCall::kAttach),
       static_cast<std::uint32_t>(wire::ProtocolCall::kDrain), wire::DeviceSynchronize::kCallId}};
  shim::Settings settings_;
  std::uint64_t lease_ = 0;
  shim::ProcessState process_{[this] { return settings_; }, &shim::DeviceSession::Make};

 public:
  shim::ClientCore& session = process_.first();
};

// Encoded and enqueued, one synchronisation in `range` launches.
void EnqueueLaunch(benchmark::State& state) {
  OpenSession open;
  const wire::LaunchKernel launch = Launch();
  std::int64_t until_synchronize = state.range(0);
  std::vector<std::uint8_t> fields;
  for (auto _ : state) {
    Encode(launch, fields);
    if (open.session.Enqueue({wire::LaunchKernel::kCallId, fields}) != cudaSuccess) std::abort();
    if (--until_synchronize == 0) {
      open.Synchronize();
      until_synchronize = state.range(0);
    }
  }
}
// The fake executor keeps every command, so their number is bounded.
BENCHMARK(EnqueueLaunch)->Arg(100)->Arg(1000)->Arg(10000)->Iterations(200'000)->UseRealTime();

double SecondsOfLaunches(bool is_recorded, std::int64_t count) {
  OpenSession open(is_recorded);
  const wire::LaunchKernel launch = Launch();
  std::vector<std::uint8_t> fields;
  const auto run = [&] {
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < count; ++i) {
      Encode(launch, fields);
      if (open.session.Enqueue({wire::LaunchKernel::kCallId, fields}) != cudaSuccess) std::abort();
    }
    open.Synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  // The record's memory comes with the first launches, and is used again once they are saved.
  for (int i = 0; i < kWarmUps; ++i) run();
  open.Save(static_cast<std::uint64_t>(kWarmUps * count));
  return run();
}

// `range` launches and a synchronisation of a session without a record (durability: none) and of
// one with (eviction), in turn. Counters: medians in nanoseconds a launch, and their difference.
void RecordedLaunch(benchmark::State& state) {
  std::vector<double> plain;
  std::vector<double> recorded;
  for (auto _ : state) {
    plain.push_back(SecondsOfLaunches(/*is_recorded=*/false, state.range(0)));
    recorded.push_back(SecondsOfLaunches(/*is_recorded=*/true, state.range(0)));
    state.SetIterationTime(recorded.back());
  }
  const double none = plot::Quantile(plain, 0.5);
  const double eviction = plot::Quantile(recorded, 0.5);
  state.counters["none_ns"] = 1e9 * none / static_cast<double>(state.range(0));
  state.counters["eviction_ns"] = 1e9 * eviction / static_cast<double>(state.range(0));
  state.counters["added_percent"] = 100 * (eviction / none - 1);
}
BENCHMARK(RecordedLaunch)->Arg(1000)->Arg(10'000)->Iterations(200)->UseManualTime();

void SynchronousRoundTrip(benchmark::State& state) {
  OpenSession open;
  for (auto _ : state) open.Synchronize();
}
BENCHMARK(SynchronousRoundTrip)->Iterations(20'000)->UseRealTime();

}  // namespace
}  // namespace torpor

BENCHMARK_MAIN();
