#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "emulator/node/topology.h"

namespace torpor::e2e {

// A preset of deploy/topologies, slowed down until this computer keeps up.
struct ScaledPreset {
  std::string preset = "paper-4gpu";
  double time_scale = 20;                       // 0: the preset's own
  Bytes gpu_memory = 0;                         // of each GPU, whole MiB; 0: the preset's
  std::vector<emulator::KernelTime> kernels{};  // that have modelled times
};

// The topology file's text. A preset that cannot be read ends the process.
std::string PresetTopology(const ScaledPreset& scaled);

}  // namespace torpor::e2e
