// What a decision costs: events a second of a scheduler whose actions are all obeyed at once, on
// four GPUs that hold a third of the images, while a tenth of the functions wait; by the number of
// functions. An event's cost should grow no faster than the logarithm of that.
#include <benchmark/benchmark.h>

#include <cmath>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "bench/run_benchmarks.h"
#include "scheduler/setup.h"

namespace torpor::scheduler {
namespace {

constexpr int kGpus = 4;
constexpr Bytes kImage = 300'000'000;

class Node {
 public:
  Node(const std::string& setup, std::uint64_t functions)
      : functions_(functions),
        scheduler_(std::move(MakeSetup(setup)->policies), MakeSetup(setup)->options) {
    for (int i = 0; i < kGpus; ++i) {
      ExecutorUp up{GpuIndex{i}, functions * kImage / 3 / kGpus + kImage, {}, i / 2};
      for (int j = 0; j < kGpus; ++j) {
        if (j != i) up.sources.push_back(GpuIndex{j});
      }
      Tell(up);
    }
    for (std::uint64_t i = 1; i <= functions; ++i) AddFunction(i);
    for (std::uint64_t i = 0; i < functions / 10; ++i) Arrive();
  }

  // A request comes and another ends.
  void Step() {
    now_ += std::chrono::milliseconds(5);
    Arrive();
    const Running done = running_.front();
    running_.pop_front();
    Tell(RequestGone{done.request, Ending::kAnswered});
    Tell(LeaseEnded{done.instance});
  }

  std::uint64_t events() const { return events_; }

 private:
  struct Running {
    RequestId request;
    InstanceId instance;
  };

  void AddFunction(std::uint64_t i) {
    Tell(FunctionSet{FunctionId{i}, {.deadline = std::chrono::milliseconds(80)}});
    Tell(InstanceAdded{InstanceId{i}, 1, {}, FunctionId{i}, true});
    Tell(GrowthWanted{GrowthId{i}, InstanceId{i}, kImage});
  }

  void Arrive() {
    Tell(RequestArrived{RequestId{++requests_}, InstanceId{1 + random_() % functions_}});
  }

  void Tell(const Event& event) {
    events_ += 1;
    for (const Action& action : scheduler_.OnEvent(event, now_)) {
      std::visit([this](const auto& a) { Apply(a); }, action);
    }
  }
  void Apply(const SwapIn& action) {
    Tell(SwapInDone{action.instance, action.gpu});
    Tell(ImageArrived{action.instance, action.gpu});
  }
  void Apply(const SwapOut& action) { Tell(SwapOutDone{action.instance, action.gpu}); }
  void Apply(const Grant& action) { running_.push_back({action.request, action.instance}); }
  template <typename Other>
  void Apply(const Other&) {}

  const std::uint64_t functions_;
  Scheduler scheduler_;
  TimePoint now_{std::chrono::seconds(1)};
  std::mt19937_64 random_{1};
  std::deque<Running> running_;
  std::uint64_t requests_ = 0;
  std::uint64_t events_ = 0;
};

void Decide(benchmark::State& state, const std::string& setup) {
  const auto functions = static_cast<std::uint64_t>(state.range(0));
  Node node(setup, functions);
  for (std::uint64_t i = 0; i < 2 * functions; ++i) node.Step();
  const std::uint64_t before = node.events();
  for (auto _ : state) node.Step();
  const auto events = static_cast<double>(node.events() - before);
  state.counters["events"] = benchmark::Counter(events, benchmark::Counter::kIsRate);
  state.counters["event_ns"] =
      benchmark::Counter(events * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

BENCHMARK_CAPTURE(Decide, torpor, "torpor")->RangeMultiplier(10)->Range(100, 100'000);
BENCHMARK_CAPTURE(Decide, torpor_plus, "torpor-plus")->RangeMultiplier(10)->Range(100, 100'000);
BENCHMARK_CAPTURE(Decide, fifo, "fifo")->RangeMultiplier(10)->Range(100, 100'000);

}  // namespace
}  // namespace torpor::scheduler

int main(int argc, char** argv) { return torpor::bench::RunBenchmarks(argc, argv); }
