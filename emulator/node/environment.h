#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "emulator/node/node_result.h"
#include "emulator/node/topology.h"

// The emulated node that a process's environment variables describe.
namespace torpor::emulator {

struct DescribedNode {
  Topology topology;
  std::string description;    // text that is equal where the topology is
  std::vector<GpuSpec> gpus;  // those that the process sees, in its order
};

// Reads the file TORPOR_EMULATOR_TOPOLOGY. Without the variable the node has TORPOR_EMULATOR_GPUS
// (1) GPUs with TORPOR_EMULATOR_COMPUTE_CAPABILITY (12.0) and TORPOR_EMULATOR_MEMORY each, by
// default half of the host's memory in total. CUDA_VISIBLE_DEVICES selects the visible GPUs.
// TORPOR_EMULATOR_STRICT is the value of `strict` where no file has the key.
NodeResult<DescribedNode> NodeFromEnvironment();

// Applies CUDA_VISIBLE_DEVICES: comma-separated indices, up to the first invalid index.
std::vector<GpuSpec> SelectVisible(const std::vector<GpuSpec>& gpus,
                                   std::string_view visible_devices);

}  // namespace torpor::emulator
