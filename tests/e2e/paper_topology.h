#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "emulator/node/topology.h"

namespace torpor::e2e {

// The paper's node, or another preset, as this computer can keep up with it.
struct PaperNode {
  std::string preset = "paper-4gpu";
  double time_scale = 20;                       // 0: the preset's own
  Bytes gpu_memory = 0;                         // of each GPU, whole MiB; 0: the preset's
  std::vector<emulator::KernelTime> kernels{};  // that have modelled times
};

// The topology file's text. A preset that cannot be read ends the process.
std::string PaperTopology(const PaperNode& node);

}  // namespace torpor::e2e
