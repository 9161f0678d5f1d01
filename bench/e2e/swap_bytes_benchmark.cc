// What a swap moves of a function whose framework allocates as PyTorch does: what was uploaded,
// what requests have changed of it, and scratch that only the GPU has written. A framework's cache
// keeps the memory of activations, which makes it part of the function's image; without a cache, or
// with `stateless: true`, it is not moved. The node is the paper's, times are the model's.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/e2e/framework_script.h"
#include "bench/e2e/modelled_node.h"
#include "bench/e2e/served_function.h"
#include "bench/plot/plot_data.h"
#include "bench/run_benchmarks.h"
#include "memory/trace/model_trace.h"
#include "tests/base/temporary_folder.h"
#include "tests/e2e/child_process.h"

namespace torpor::bench {
namespace {

constexpr int kColdRuns = 5;

struct Variant {
  const char* name;
  TensorCache cache;
  const char* setting;
};

constexpr Variant kVariants[] = {
    {"cache", TensorCache::kOn, ""},
    {"cache, stateless", TensorCache::kOn, "stateless: true"},
    {"no cache", TensorCache::kOff, ""},
    {"no cache, stateless", TensorCache::kOff, "stateless: true"},
};

const memory::ModelShape& PaperModel(const std::string& name) {
  const auto& models = memory::PaperModels();
  return *std::ranges::find(models, name, &memory::ModelShape::name);
}

// As if the model had a quarter of its layers.
memory::ModelShape Quarter(memory::ModelShape model) {
  model.name += " / 4";
  model.inference_ms /= 4;
  for (auto* const groups : {&model.parameters, &model.activations}) {
    for (memory::TensorGroup& group : *groups) group.count = (group.count + 3) / 4;
  }
  return model;
}

const std::vector<memory::ModelShape>& Models() {
  static const auto* const models =
      new std::vector<memory::ModelShape>{PaperModel("ResNet-152"), Quarter(PaperModel("Bert-qa"))};
  return *models;
}

// In the order of the plots.
constexpr const char* kKinds[] = {"in, uploaded",  "in, changed",  "in, scratch",
                                  "out, uploaded", "out, changed", "out, scratch"};

// For the plots: megabytes of the last swap, by model, kind and variant.
using Figures = std::map<std::string, std::map<std::string, std::map<std::string, double>>>;
Figures& Moved() {
  static auto* const figures = new Figures;
  return *figures;
}
bool& IsValid() {
  static bool is_valid = true;
  return is_valid;
}

// Kernels that write activations take the inference's time between them.
std::string Topology(const memory::ModelShape& model) {
  int writes = 0;
  for (const memory::TensorGroup& group : model.activations) writes += group.count;
  return ModelledTopology({{.name = "*Write*", .us = model.inference_ms * 1e3 / writes}});
}

void SwapBytes(benchmark::State& state, const memory::ModelShape& model, const Variant& variant) {
  const TemporaryFolder folder;
  const std::string script = folder.Write("script", FrameworkScript(model, variant.cache));
  ServedFunction served(
      Topology(model), "",
      {.command = {std::string(DRIVEN_DIR) + "/memory_script_server", "--script", script},
       .path = "/run",
       .body = [](int request) { return "{\"value\":[" + std::to_string(request) + "]}"; },
       .setting = variant.setting});
  std::vector<double> latency;
  std::vector<double> transfer;
  std::vector<double> out;
  ServedFunction::ColdRun run;
  for ([[maybe_unused]] auto _ : state) {
    run = served.Cold();
    state.SetIterationTime(run.latency_ms * 1e-3);
    latency.push_back(run.latency_ms);
    transfer.push_back(run.transfer_ms);
    out.push_back(run.out_ms);
  }
  state.counters["cold_ms"] = Quantile(latency, 0.5);
  state.counters["transfer_ms"] = Quantile(transfer, 0.5);
  state.counters["out_ms"] = Quantile(out, 0.5);
  for (const auto& [origin, moved] : run.by_origin) {
    state.counters["MB_in_" + origin] = moved.in / 1e6;
    state.counters["MB_out_" + origin] = moved.out / 1e6;
    Moved()[model.name]["in, " + origin][variant.name] = moved.in / 1e6;
    Moved()[model.name]["out, " + origin][variant.name] = moved.out / 1e6;
  }
  Conclude(state, served.Report());
  IsValid() = IsValid() && served.Report().is_valid();
}

void Plot(const std::string& file, const memory::ModelShape& model) {
  BarPlot plot{TitleOf("Bytes of a swap, " + model.name, IsValid()), "MB", false, {}, {}};
  for (const Variant& variant : kVariants) plot.groups.emplace_back(variant.name);
  for (const char* kind : kKinds) {
    BarSeries bars{kind, {}};
    for (const std::string& variant : plot.groups) {
      bars.values.push_back(Moved()[model.name][kind][variant]);
    }
    plot.series.push_back(std::move(bars));
  }
  WritePlot(file, plot);
}

void Register() {
  for (const memory::ModelShape& model : Models()) {
    for (const Variant& variant : kVariants) {
      const std::string name = "SwapBytes/" + model.name + "/" + variant.name;
      benchmark::RegisterBenchmark(name.c_str(), SwapBytes, model, variant)
          ->UseManualTime()
          ->Iterations(kColdRuns)
          ->Unit(benchmark::kMillisecond);
    }
  }
}

}  // namespace
}  // namespace torpor::bench

int main(int argc, char** argv) {
  torpor::bench::Register();
  if (const int status = torpor::bench::RunBenchmarks(argc, argv); status != 0) return status;
  torpor::bench::Plot("swap_bytes_resnet", torpor::bench::Models().front());
  torpor::bench::Plot("swap_bytes_bert", torpor::bench::Models().back());
  return 0;
}
