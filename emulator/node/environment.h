#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "emulator/node/node_result.h"
#include "emulator/node/topology.h"

// The emulated node as the environment of a process describes it.
namespace torpor::emulator {

struct DescribedNode {
  Topology topology;
  std::string description;    // text that is equal where the topology is
  std::vector<GpuSpec> gpus;  // those that the process sees, in its order
};

// The file TORPOR_EMULATOR_TOPOLOGY, else TORPOR_EMULATOR_GPUS (1) GPUs of
// TORPOR_EMULATOR_COMPUTE_CAPABILITY (12.0) and of TORPOR_EMULATOR_MEMORY each, by default half of
// the host's memory between them. CUDA_VISIBLE_DEVICES selects.
NodeResult<DescribedNode> NodeFromEnvironment();

// CUDA_VISIBLE_DEVICES: comma-separated indices; the first invalid one ends the list.
std::vector<GpuSpec> SelectVisible(const std::vector<GpuSpec>& gpus,
                                   std::string_view visible_devices);

}  // namespace torpor::emulator
