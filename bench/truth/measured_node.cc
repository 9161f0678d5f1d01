#include "bench/truth/measured_node.h"

#include "tests/e2e/preset_topology.h"

namespace torpor::truth {
namespace {

// Of each 112 MiB are for functions; together these have 1.4 times what the four GPUs hold.
constexpr Bytes kGpuMemory = 120 * kMiB;

}  // namespace

std::vector<e2e::ExampleModel> TruthModels() {
  return {e2e::EncoderModel("short", 3, 256, 1024), e2e::EncoderModel("deep", 6, 256, 2048),
          e2e::EncoderModel("wide", 4, 256, 16384), e2e::EncoderModel("large", 4, 384, 16384),
          e2e::DigitsModel("digits")};
}

std::string TruthTopology(const TruthOptions& options) {
  return e2e::PresetTopology({.time_scale = options.time_scale,
                              .gpu_memory = kGpuMemory,
                              .kernels = e2e::ExampleKernelTimes()});
}

absl::StatusOr<emulator::Topology> SlowTopology(const TruthOptions& options) {
  auto topology = emulator::ParseTopology(TruthTopology(options), "the node's topology");
  if (!topology.ok()) return absl::InvalidArgumentError(topology.failure().message);
  for (emulator::PcieSwitch& entry : topology->switches) entry.gbps /= options.time_scale;
  for (emulator::GpuSpec& gpu : topology->gpus) gpu.pcie_gbps /= options.time_scale;
  topology->nvlinks.gbps_per_link /= options.time_scale;
  topology->time_scale = 1;
  return *topology;
}

std::string TruthSettings(const TruthOptions& options) {
  return "policy: " + options.policy + "\nevent_log: events.log\nqueue_timeout: 50s\n";
}

}  // namespace torpor::truth
