#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/units.h"
#include "emulator/node/topology.h"

namespace torpor::sim {

// A node's GPUs and links. Every GPU is behind a switch, alone if the topology names no switch.
struct NodeModel {
  struct Gpu {
    Bytes capacity = 0;  // for functions
    double pcie_bytes_per_s = 0;
    std::size_t pcie_switch = 0;
    std::size_t place_behind_switch = 0;
    std::vector<GpuIndex> sources;           // linked by NVLink, the fastest first
    std::vector<double> nvlink_bytes_per_s;  // from each GPU of the node; 0: no link
  };
  struct Switch {
    double bytes_per_s = 0;
    std::vector<double> gpu_links;  // in bytes a second
  };
  std::vector<Gpu> gpus;
  std::vector<Switch> switches;
};

// `reserved` of each GPU's memory is not for functions. An unpaced link counts as one of 1 TB/s.
// Fails where no memory is left.
absl::StatusOr<NodeModel> MakeNodeModel(const emulator::Topology& topology, Bytes reserved);

// A topology file as of the emulator (docs/emulator.md), or the name of one that is shipped:
// paper-4gpu, paper-1gpu, nvswitch-8gpu, unlinked-2gpu.
absl::StatusOr<NodeModel> ReadNodeModel(const std::string& file_or_name, Bytes reserved);

}  // namespace torpor::sim
