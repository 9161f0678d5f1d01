// How long a GPU goes unserved when its executor dies (docs/decisions/0050): with a spare executor,
// and where another one must start. One emulated H200 with its whole memory as a pool, at strict
// costs and time_scale 1; torpord, executors and client libraries are the real ones. A real driver
// adds some 900 ms to the start of an executor, which the emulator does not model.
//   serves_ms, serves_ms_max    from the kill until torpord says that the GPU is served; median
//   answer_ms, answer_ms_max    from the kill until a function's request, sent then, is answered
#include <benchmark/benchmark.h>
#include <signal.h>

#include <algorithm>
#include <future>
#include <string>
#include <vector>

#include "base/clock.h"
#include "bench/e2e/modelled_node.h"
#include "bench/plot/plot_data.h"
#include "bench/run_benchmarks.h"
#include "tests/e2e/await_status.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/preset_topology.h"

namespace torpor::bench {
namespace {

constexpr int kDeaths = 20;
constexpr const char* kFunction = "measured";

class Gpu {
 public:
  explicit Gpu(bool has_spare)
      : has_spare_(has_spare),
        node_(e2e::PresetTopology({.preset = "h200-1gpu", .time_scale = 1}), {kFunction},
              std::string("spare_executor: ") + (has_spare ? "true" : "false") + "\n") {
    node_.Start();
    node_.StartFunction(kFunction, {std::string(DRIVEN_DIR) + "/layers_server", "--layers", "8",
                                    "--mebibytes", "4"});
    Ask();
  }

  struct Death {
    double serves_ms = 0;
    double answer_ms = 0;
  };
  Death Die() {
    pid_t executor = 0;
    Await("a GPU that is ready for another death", [&](const v1::GpuStatus& gpu) {
      executor = static_cast<pid_t>(gpu.executor_pid());
      return gpu.state() == "ready" && gpu.leased_to().empty() &&
             (!has_spare_ || gpu.spare_pid() != 0);
    });
    const TimePoint begin = SteadyClock().Now();
    kill(executor, SIGKILL);
    Death death;
    auto answered = std::async(std::launch::async, [&] {
      Ask();
      death.answer_ms = MsSince(begin);
    });
    Await("another executor", [&](const v1::GpuStatus& gpu) {
      return gpu.state() == "ready" && gpu.executor_pid() != executor;
    });
    death.serves_ms = MsSince(begin);
    answered.get();
    return death;
  }

 private:
  static double MsSince(TimePoint begin) { return ToSeconds(SteadyClock().Now() - begin) * 1e3; }
  void Ask() const {
    const e2e::Reply reply = node_.PostOne(std::string("/function/") + kFunction + "/first", "{}");
    if (reply.status != 200) Fail("a request was answered " + reply.body);
  }
  void Await(const std::string& what,
             const std::function<bool(const v1::GpuStatus&)>& is_so) const {
    const absl::Status status =
        e2e::AwaitStatus(node_.folder().path() + "/admin/admin.sock", what,
                         [&](const v1::NodeStatus& node) { return is_so(node.gpus(0)); });
    if (!status.ok()) Fail(status.ToString());
  }

  const bool has_spare_;
  e2e::EmulatedNode node_;
};

void TakeOver(benchmark::State& state, bool has_spare) {
  Gpu gpu(has_spare);
  std::vector<double> serves;
  std::vector<double> answers;
  for ([[maybe_unused]] auto _ : state) {
    const Gpu::Death death = gpu.Die();
    serves.push_back(death.serves_ms);
    answers.push_back(death.answer_ms);
    state.SetIterationTime(death.serves_ms * 1e-3);
  }
  state.counters["serves_ms"] = Quantile(serves, 0.5);
  state.counters["serves_ms_max"] = Quantile(serves, 1);
  state.counters["answer_ms"] = Quantile(answers, 0.5);
  state.counters["answer_ms_max"] = Quantile(answers, 1);
}

BENCHMARK_CAPTURE(TakeOver, start, /*has_spare=*/false)
    ->Iterations(kDeaths)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(TakeOver, spare, /*has_spare=*/true)
    ->Iterations(kDeaths)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace torpor::bench

int main(int argc, char** argv) { return torpor::bench::RunBenchmarks(argc, argv); }
