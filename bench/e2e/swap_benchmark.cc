// Figure 7: what each part of swapping gains a request whose function is not on a GPU. torpord, its
// executor, the client libraries and the `encoder` example are the real ones; the GPU is the first
// of the emulated node of the paper. All times are the model's: real ones over its time_scale.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bench/e2e/metrics_page.h"
#include "bench/e2e/native_load.h"
#include "bench/plot/plot_data.h"
#include "emulator/node/model_account.h"
#include "emulator/node/topology.h"
#include "examples/encoder/model.h"
#include "tests/e2e/emulated_node.h"

namespace torpor::bench {
namespace {

using examples::encoder::Shape;
using examples::encoder::Tensor;

constexpr int kColdRuns = 9;
constexpr int kWarmRuns = 9;
constexpr int kNativeRuns = 5;
// Until the order of first use is known: twice the same, and once swapped in to look through it.
constexpr int kLearningRuns = 4;
constexpr auto kPatience = std::chrono::seconds(60);

// An encoder with about as many bytes, in tensors about as large, and kernels that take about as
// long as those of one of the paper's models; or a fixed part of all.
struct Model {
  const char* name;
  Shape shape;
  double kernel_us;  // of each of the encoder's kernels; library calls take what they take
};

const Model kModels[] = {
    // 241 MB in 900 tensors, 17 ms.
    {"like ResNet-152", {.layers = 76, .hidden = 256, .vocabulary = 1024, .seed = 1}, 20},
    // A quarter of 1340 MB in few tensors, and of 43 ms.
    {"like Bert-qa / 4", {.layers = 6, .hidden = 1024, .vocabulary = 8192, .seed = 2}, 160},
};

struct Way {
  const char* name;
  const char* settings;
};

constexpr Way kWays[] = {
    {"baseline", "swap_pinned: false\nswap_pipeline: none\n"},
    {"pinned", "swap_pipeline: none\n"},
    {"parameter pipeline", "swap_pipeline: parameter\n"},
    {"grouped pipeline", ""},
};

// Of the bytes that swaps move, as the metrics have it.
constexpr const char* kOrigins[] = {"uploaded", "changed", "scratch"};

constexpr const char* kTokens = R"({"tokens":[17,4,901,33,250,7,512,86]})";

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

std::string TopologyText(const Model& model) {
  std::ostringstream text;
  text << std::ifstream(TORPOR_BENCH_TOPOLOGY).rdbuf();
  text << "\nkernels:\n  - {name: '*encoder*', us: " << model.kernel_us << "}\n";
  return text.str();
}

const emulator::Topology& PaperNode() {
  static const auto* const topology = [] {
    auto parsed = emulator::ParseTopology(TopologyText(kModels[0]), TORPOR_BENCH_TOPOLOGY);
    if (!parsed.ok()) Fail(parsed.failure().message);
    return new emulator::Topology(*parsed);
  }();
  return *topology;
}

double ModelledMs(Duration real) { return ToSeconds(real) * 1e3 / PaperNode().time_scale; }

// What a swap-in of so many bytes takes at the rate of the GPU's link.
double LinkMs(double bytes) { return bytes / (PaperNode().gpus[0].pcie_gbps * 1e9) * 1e3; }

// The daemon with one function, the model's encoder, on GPU 0.
class ServedModel {
 public:
  ServedModel(const Model& model, const Way& way)
      : node_(TopologyText(model), {"encoder"}, std::string(way.settings) + "gpus: [0]\n") {
    node_.Start();
    metrics_address_ = node_.Status().at("metrics_address");
    node_.StartFunction("encoder", {std::string(TORPOR_BIN_DIR) + "/examples/encoder", "--layers",
                                    std::to_string(model.shape.layers), "--hidden",
                                    std::to_string(model.shape.hidden), "--vocabulary",
                                    std::to_string(model.shape.vocabulary), "--seed",
                                    std::to_string(model.shape.seed)});
    answer_ = Post("resident").body;
    for (int i = 0; i < kLearningRuns; ++i) Warm();
    for (int i = 0; i < kLearningRuns; ++i) Cold();
    auto account = emulator::ModelAccount::Open(node_.folder().path() + "/emulator-node");
    if (!account.ok()) Fail(account.failure().message);
    account_ = std::make_unique<emulator::ModelAccount>(std::move(*account));
    account_->Reset();
  }

  // A request's latency while the model is resident.
  double Warm() {
    const TimePoint begin = SteadyClock().Now();
    Post("resident");
    return ModelledMs(SteadyClock().Now() - begin);
  }

  struct ColdRun {
    double latency_ms = 0;
    double transfer_ms = 0;  // from the beginning of the swap-in until all is on the GPU
    double bytes = 0;
    struct Moved {
      double in = 0;
      double out = 0;  // by the eviction before
    };
    std::map<std::string, Moved> by_origin;
  };

  // Evicts the model; then a request.
  ColdRun Cold() {
    const std::string before = ReadMetrics(metrics_address_);
    Evict();
    const TimePoint begin = SteadyClock().Now();
    Post("host");
    ColdRun run;
    run.latency_ms = ModelledMs(SteadyClock().Now() - begin);
    const std::string after = AwaitSwapIn(SwapsIn(before));
    const auto grown = [&](const char* metric, const std::vector<std::string>& labels) {
      return ValueOf(after, metric, labels) - ValueOf(before, metric, labels);
    };
    run.transfer_ms =
        grown("torpor_swap_duration_seconds_sum", {kIn}) * 1e3 / PaperNode().time_scale;
    run.bytes = grown("torpor_swap_bytes_total", {kIn});
    for (const char* origin : kOrigins) {
      run.by_origin[origin] = {
          .in = grown("torpor_swap_bytes_total", {kIn, OriginLabel(origin)}),
          .out = grown("torpor_swap_bytes_total", {kOut, OriginLabel(origin)})};
    }
    return run;
  }

  std::string Verdict() const { return account_->Read().ToText(); }

 private:
  static constexpr const char* kIn = R"(direction="in")";
  static constexpr const char* kOut = R"(direction="out")";

  static std::string OriginLabel(const std::string& origin) { return "origin=\"" + origin + "\""; }
  static double SwapsIn(const std::string& page) {
    return ValueOf(page, "torpor_swap_duration_seconds_count", {kIn});
  }

  e2e::Reply Post(const std::string& from) const {
    e2e::Reply reply = node_.PostOne("/function/encoder/encode", kTokens);
    const bool is_right = reply.status == 200 && reply.headers["x-torpor-swap"] == from &&
                          (answer_.empty() || reply.body == answer_);
    if (!is_right) Fail("a wrong answer: " + reply.body + "\n" + node_.Logs());
    return reply;
  }

  // A request's answer is there a little before its lease ends, and until then it is refused.
  void Evict() const {
    const std::string& folder = node_.folder().path();
    const TimePoint give_up = SteadyClock().Now() + kPatience;
    while (true) {
      const auto asked = e2e::RunToItsEnd(
          "torporctl", {"evict", "encoder", "--socket", folder + "/admin.sock"}, folder);
      if (asked->Wait(Duration::zero()) == 0) return;
      if (SteadyClock().Now() > give_up) Fail(asked->Stderr());
    }
  }

  // The metrics when there has been another swap-in than `before`.
  std::string AwaitSwapIn(double before) const {
    const TimePoint give_up = SteadyClock().Now() + kPatience;
    while (SteadyClock().Now() < give_up) {
      std::string page = ReadMetrics(metrics_address_);
      if (SwapsIn(page) > before) return page;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    Fail("the swap-in does not end\n" + node_.Logs());
  }

  e2e::EmulatedNode node_;
  std::string metrics_address_;
  std::string answer_;
  std::unique_ptr<emulator::ModelAccount> account_;
};

// Medians, for the plot: by way, and by model.
std::map<std::string, std::map<std::string, double>>& Latencies() {
  static auto* const latencies = new std::map<std::string, std::map<std::string, double>>;
  return *latencies;
}

void Swap(benchmark::State& state, const Model& model, const Way& way) {
  ServedModel served(model, way);
  std::vector<double> warm;
  std::vector<double> cold;
  std::vector<double> transfer;
  ServedModel::ColdRun last;
  warm.reserve(kWarmRuns);
  for (int i = 0; i < kWarmRuns; ++i) warm.push_back(served.Warm());
  for ([[maybe_unused]] auto _ : state) {
    last = served.Cold();
    state.SetIterationTime(last.latency_ms * 1e-3);
    cold.push_back(last.latency_ms);
    transfer.push_back(last.transfer_ms);
  }
  const double cold_ms = Quantile(cold, 0.5);
  const double warm_ms = Quantile(warm, 0.5);
  const double transfer_ms = Quantile(transfer, 0.5);
  state.counters["cold_ms"] = cold_ms;
  state.counters["cold_ms_least"] = Quantile(cold, 0);
  state.counters["cold_ms_most"] = Quantile(cold, 1);
  state.counters["warm_ms"] = warm_ms;
  state.counters["transfer_ms"] = transfer_ms;
  state.counters["hidden"] = 1 - (cold_ms - warm_ms) / transfer_ms;
  state.counters["of_link"] = LinkMs(last.bytes) / transfer_ms;
  for (const auto& [origin, moved] : last.by_origin) {
    state.counters["MB_in_" + origin] = moved.in / 1e6;
    state.counters["MB_out_" + origin] = moved.out / 1e6;
  }
  state.SetLabel(served.Verdict());
  Latencies()[way.name][model.name] = cold_ms;
  Latencies()["resident"][model.name] = warm_ms;
}

// The order in which the encoder has them.
std::vector<Bytes> TensorsOf(const Shape& shape) {
  const auto at = examples::encoder::MakeWeights(shape).at;
  std::vector<Bytes> tensors;
  const auto add = [&](Tensor tensor) { tensors.push_back(tensor.count * sizeof(float)); };
  add(at.tokens);
  add(at.positions);
  for (const auto& layer : at.layers) {
    for (const Tensor tensor :
         {layer.attention_norm_scale, layer.attention_norm_bias, layer.qkv, layer.qkv_bias,
          layer.projection, layer.projection_bias, layer.inner_norm_scale, layer.inner_norm_bias,
          layer.up, layer.up_bias, layer.down, layer.down_bias}) {
      add(tensor);
    }
  }
  add(at.final_norm_scale);
  add(at.final_norm_bias);
  return tensors;
}

// Without Torpor: a program loads the same tensors.
void NativeLoad(benchmark::State& state, const Model& model) {
  const std::vector<Duration> loads =
      MeasureNativeLoad(TORPOR_BENCH_TOPOLOGY, TensorsOf(model.shape), kNativeRuns);
  std::vector<double> load_ms;
  for ([[maybe_unused]] auto _ : state) {
    load_ms.push_back(ModelledMs(loads[load_ms.size()]));
    state.SetIterationTime(load_ms.back() * 1e-3);
  }
  state.counters["load_ms"] = Quantile(load_ms, 0.5);
}

void PlotLatencies() {
  BarPlot plot{"A request that needs a swap-in", "milliseconds", false, {}, {}};
  for (const Model& model : kModels) plot.groups.emplace_back(model.name);
  std::vector<std::string> ways;
  for (const Way& way : kWays) ways.emplace_back(way.name);
  ways.emplace_back("resident");
  for (const std::string& way : ways) {
    BarSeries series{way, {}};
    for (const std::string& model : plot.groups) series.values.push_back(Latencies()[way][model]);
    plot.series.push_back(std::move(series));
  }
  WritePlot("swap_breakdown", plot);
}

void Register() {
  for (const Model& model : kModels) {
    for (const Way& way : kWays) {
      const std::string name = std::string("Swap/") + model.name + "/" + way.name;
      benchmark::RegisterBenchmark(name.c_str(), Swap, model, way)
          ->UseManualTime()
          ->Iterations(kColdRuns)
          ->Unit(benchmark::kMillisecond);
    }
    const std::string name = std::string("NativeLoad/") + model.name;
    benchmark::RegisterBenchmark(name.c_str(), NativeLoad, model)
        ->UseManualTime()
        ->Iterations(kNativeRuns)
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace torpor::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  torpor::bench::Register();
  benchmark::RunSpecifiedBenchmarks();
  torpor::bench::PlotLatencies();
  return 0;
}
