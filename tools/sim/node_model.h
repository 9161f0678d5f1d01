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
    Bytes capacity = 0;           // for functions
    double pcie_bytes_per_s = 0;  // of the GPU's own link
    std::size_t pcie_switch = 0;
    std::size_t place_behind_switch = 0;     // index in Switch::gpu_links
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

// Makes a node from a topology. `reserved` bytes of each GPU's memory are not for functions. A link
// without a rate counts as 1 TB/s.
// Returns InvalidArgument if a GPU has no memory left.
absl::StatusOr<NodeModel> MakeNodeModel(const emulator::Topology& topology, Bytes reserved);

// Reads a topology file (docs/emulator.md) or a built-in one: paper-4gpu, paper-1gpu,
// nvswitch-8gpu, unlinked-2gpu. Returns NotFound or InvalidArgument with the file's name.
absl::StatusOr<NodeModel> ReadNodeModel(const std::string& file_or_name, Bytes reserved);

}  // namespace torpor::sim
