#include "bench/e2e/modelled_node.h"

#include <cstdio>
#include <cstdlib>

#include "tests/e2e/preset_topology.h"

namespace torpor::bench {
namespace {

// Four GPUs copy 26 GB/s in the model. At 20 that is 1.3 GB/s for a computer whose one core copies
// about 12, beside the functions' own work; and waking up some 60 µs late, which a thread does, is
// little against copies and kernels of 400 µs or more.
constexpr double kTimeScale = 20;

constexpr const char* kPaperPreset = "paper-4gpu";

std::string Preset() {
  const char* const chosen = std::getenv("TORPOR_BENCH_PRESET");
  return chosen == nullptr ? kPaperPreset : chosen;
}

double TimeScale() {
  const char* const chosen = std::getenv("TORPOR_BENCH_TIME_SCALE");
  if (chosen != nullptr) return std::strtod(chosen, nullptr);
  if (Preset() == kPaperPreset) return kTimeScale;
  const auto preset =
      emulator::ParseTopology(e2e::PresetTopology({.preset = Preset(), .time_scale = 0}), Preset());
  if (!preset.ok()) Fail(preset.failure().message);
  return preset->time_scale;
}

}  // namespace

void Fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

const emulator::Topology& ModelledNode() {
  static const auto* const topology = [] {
    auto parsed = emulator::ParseTopology(ModelledTopology(), Preset());
    if (!parsed.ok()) Fail(parsed.failure().message);
    return new emulator::Topology(*parsed);
  }();
  return *topology;
}

std::string ModelledTopology(const std::vector<emulator::KernelTime>& kernels, double slower) {
  return e2e::PresetTopology(
      {.preset = Preset(), .time_scale = TimeScale() * slower, .kernels = kernels});
}

double ModelledMs(Duration real) { return ToSeconds(real) * 1e3 / ModelledNode().time_scale; }

double LinkMs(double bytes, unsigned gpu) {
  return bytes / (ModelledNode().gpus[gpu].pcie_gbps * 1e9) * 1e3;
}

void Conclude(benchmark::State& state, const emulator::ModelReport& report) {
  state.counters["valid"] = report.is_valid() ? 1 : 0;
  state.SetLabel(report.ToText());
}

std::string TitleOf(const std::string& title, bool is_valid) {
  return is_valid ? title : title + " (INVALID: the emulation fell behind its model)";
}

}  // namespace torpor::bench
