#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace torpor::emulator {

// One emulated GPU as the topology file describes it.
struct GpuSpec {
  unsigned place = 0;  // index in the whole topology, whichever GPUs the process sees
  std::string name = "Torpor Emulated GPU";
  Bytes memory = 0;
  double pcie_gbps = 0;     // 1e9 bytes a second and direction; 0 is not paced
  std::string pcie_switch;  // GPUs that name one share its rate; empty is a link of its own
  unsigned compute_capability = 120;  // 10 * major + minor
  unsigned multiprocessors = 16;
};

struct Topology {
  std::vector<GpuSpec> gpus;
};

enum class TopologyError { kUnreadable, kInvalid };
template <typename T>
using TopologyResult = Result<T, TopologyError>;

// Parses the text of a topology file, version v1; docs/emulator.md describes it. `source` names
// the file in messages.
TopologyResult<Topology> ParseTopology(const std::string& text, std::string_view source);

// "512MiB", "24 GiB", "1e9" or "80GB" as bytes.
TopologyResult<Bytes> ParseBytes(std::string_view text);

// The node that the environment describes: the file TORPOR_EMULATOR_TOPOLOGY, else one GPU of
// TORPOR_EMULATOR_MEMORY, else one GPU of half of the host's memory; then filtered and
// reordered by CUDA_VISIBLE_DEVICES.
TopologyResult<Topology> TopologyFromEnvironment();

// CUDA_VISIBLE_DEVICES: comma-separated indices; the first invalid one ends the list.
Topology SelectVisible(const Topology& topology, std::string_view visible_devices);

}  // namespace torpor::emulator
