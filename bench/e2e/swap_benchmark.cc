// Figure 7: what each part of swapping gains a request whose function is not on a GPU; and the
// swap-in itself against a native load and the link's limit. torpord, its executor, the client
// libraries and the `encoder` example are the real ones; the GPU is the first of the emulated node
// of the paper. All times are the model's.
//   of_link_rate     what the link needs for the bytes, of what the swap-in took
//   hidden_fraction  of the swap-in's time, what the request did not have to wait for; the most
//                    that it can be is hideable_fraction, when all work is done during the swap-in
#include <benchmark/benchmark.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/e2e/modelled_node.h"
#include "bench/e2e/native_load.h"
#include "bench/e2e/served_function.h"
#include "bench/plot/plot_data.h"
#include "bench/run_benchmarks.h"
#include "examples/encoder/model.h"

namespace torpor::bench {
namespace {

using examples::encoder::Shape;
using examples::encoder::Tensor;

constexpr int kColdRuns = 9;
constexpr int kWarmRuns = 9;
constexpr int kNativeRuns = 5;

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

// What the plots show: medians, by series and model.
struct Figures {
  std::map<std::string, std::map<std::string, double>> latency_ms;
  std::map<std::string, std::map<std::string, double>> load_ms;
  bool is_valid = true;
};

Figures& Measured() {
  static auto* const figures = new Figures;
  return *figures;
}

void Note(benchmark::State& state, const emulator::ModelReport& report) {
  Conclude(state, report);
  Measured().is_valid = Measured().is_valid && report.is_valid();
}

ServedProgram Encoder(const Shape& shape) {
  return {.command = {std::string(TORPOR_BIN_DIR) + "/examples/encoder", "--layers",
                      std::to_string(shape.layers), "--hidden", std::to_string(shape.hidden),
                      "--vocabulary", std::to_string(shape.vocabulary), "--seed",
                      std::to_string(shape.seed)},
          .path = "/encode",
          .body = [](int) { return R"({"tokens":[17,4,901,33,250,7,512,86]})"; },
          .setting = ""};
}

void Swap(benchmark::State& state, const Model& model, const Way& way) {
  ServedFunction served(ModelledTopology({{.name = "*encoder*", .us = model.kernel_us}}),
                        way.settings, Encoder(model.shape));
  std::vector<double> warm;
  std::vector<double> cold;
  std::vector<double> transfer;
  double bytes = 0;
  warm.reserve(kWarmRuns);
  for (int i = 0; i < kWarmRuns; ++i) warm.push_back(served.Warm());
  for ([[maybe_unused]] auto _ : state) {
    const ServedFunction::ColdRun run = served.Cold();
    state.SetIterationTime(run.latency_ms * 1e-3);
    cold.push_back(run.latency_ms);
    transfer.push_back(run.transfer_ms);
    bytes = run.bytes;
  }
  const double cold_ms = Quantile(cold, 0.5);
  const double warm_ms = Quantile(warm, 0.5);
  const double transfer_ms = Quantile(transfer, 0.5);
  state.counters["cold_ms"] = cold_ms;
  state.counters["cold_ms_least"] = Quantile(cold, 0);
  state.counters["cold_ms_max"] = Quantile(cold, 1);
  state.counters["warm_ms"] = warm_ms;
  state.counters["transfer_ms"] = transfer_ms;
  state.counters["MB"] = bytes / 1e6;
  state.counters["hidden_fraction"] = 1 - (cold_ms - warm_ms) / transfer_ms;
  state.counters["hideable_fraction"] = std::min(1.0, warm_ms / transfer_ms);
  state.counters["of_link_rate"] = LinkMs(bytes) / transfer_ms;
  Note(state, served.Report());
  Measured().latency_ms[way.name][model.name] = cold_ms;
  Measured().latency_ms["resident"][model.name] = warm_ms;
  Measured().load_ms[std::string("swap-in, ") + way.name][model.name] = transfer_ms;
  Measured().load_ms["the link's limit"][model.name] = LinkMs(bytes);
}

// Sizes of the tensors, in the order of the encoder.
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

// Without Torpor: a program loads the same tensors. Many are so small that a thread which wakes up
// late is late by much, so that time goes slower here.
void Load(benchmark::State& state, const Model& model) {
  constexpr double kSlower = 3;
  const NativeLoad load =
      MeasureNativeLoad(ModelledTopology({}, kSlower), TensorsOf(model.shape), kNativeRuns);
  std::vector<double> load_ms;
  for ([[maybe_unused]] auto _ : state) {
    load_ms.push_back(ModelledMs(load.durations[load_ms.size()]) / kSlower);
    state.SetIterationTime(load_ms.back() * 1e-3);
  }
  state.counters["load_ms"] = Quantile(load_ms, 0.5);
  Note(state, load.report);
  Measured().load_ms["native load"][model.name] = Quantile(load_ms, 0.5);
}

void Plot(const std::string& name, const std::string& title, const std::vector<std::string>& series,
          std::map<std::string, std::map<std::string, double>>& figures) {
  BarPlot plot{TitleOf(title, Measured().is_valid), "milliseconds", false, {}, {}};
  for (const Model& model : kModels) plot.groups.emplace_back(model.name);
  for (const std::string& one : series) {
    BarSeries bars{one, {}};
    for (const std::string& model : plot.groups) bars.values.push_back(figures[one][model]);
    plot.series.push_back(std::move(bars));
  }
  WritePlot(name, plot);
}

void WritePlots() {
  std::vector<std::string> ways;
  for (const Way& way : kWays) ways.emplace_back(way.name);
  ways.emplace_back("resident");
  Plot("swap_breakdown", "A request that needs a swap-in", ways, Measured().latency_ms);
  Plot("swap_in", "Bringing a model to the GPU",
       {"native load", "swap-in, baseline", "swap-in, grouped pipeline", "the link's limit"},
       Measured().load_ms);
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
    benchmark::RegisterBenchmark(name.c_str(), Load, model)
        ->UseManualTime()
        ->Iterations(kNativeRuns)
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace torpor::bench

int main(int argc, char** argv) {
  torpor::bench::Register();
  if (const int status = torpor::bench::RunBenchmarks(argc, argv); status != 0) return status;
  torpor::bench::WritePlots();
  return 0;
}
