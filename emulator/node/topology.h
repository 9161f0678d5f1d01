#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "emulator/node/driver_costs.h"
#include "emulator/node/driver_faults.h"
#include "emulator/node/fault_plan.h"
#include "emulator/node/node_result.h"
#include "emulator/node/strictness.h"

namespace torpor::emulator {

inline constexpr unsigned kMaxGpus = 64;
inline constexpr unsigned kMaxSwitches = 64;
inline constexpr unsigned kMaxGpusOfSwitch = 16;
inline constexpr Bytes kMinGpuMemory = 2 * kMiB;
inline constexpr Bytes kMaxGpuMemory = kGiB << 12;
inline constexpr double kMinCapability = 5;
inline constexpr double kMaxCapability = 20;

// A switch's link to the host, shared by its GPUs. Rates are in 1e9 bytes per second and direction.
struct PcieSwitch {
  std::string name;
  double gbps = 0;
};

// One emulated GPU, as the topology file describes it. Times are in modelled units.
struct GpuSpec {
  unsigned place = 0;  // index in the whole topology, whichever GPUs the process sees
  std::string name = "Torpor Emulated GPU";
  Bytes memory = 0;
  double pcie_gbps = 0;                 // of its own link; 0 is not paced
  double pageable_gbps = 0;             // of one copy from or to pageable memory; 0: the links'
  double copy_us = 0;                   // before a paced copy's first byte
  std::optional<unsigned> pcie_switch;  // index of the switch that it is behind
  unsigned compute_capability = 120;    // 10 * major + minor
  unsigned multiprocessors = 16;
};

// NVLinks between pairs of GPUs.
struct Nvlinks {
  double gbps_per_link = 0;
  // Links between the GPUs at two places: symmetric, or empty without any NVLinks.
  std::vector<std::vector<unsigned>> links;

  unsigned Between(unsigned place, unsigned other) const {
    return links.empty() ? 0 : links[place][other];
  }
};

// The modelled duration of kernels with matching names.
struct KernelTime {
  std::string name;  // a glob
  double us = 0;
};

// An emulated node, as parsed from a topology file.
struct Topology {
  std::vector<GpuSpec> gpus;
  std::vector<PcieSwitch> switches;
  Nvlinks nvlinks;
  std::vector<KernelTime> kernels;  // the first that matches counts
  double time_scale = 1;            // real seconds in which a modelled one passes
  bool computes = true;             // else kernels and library calls do nothing
  Strictness strict;
  DriverCosts costs;  // in force as `strict` says
  DriverFaults faults;
  FaultPlan plan;
};

// Parses the text of a topology file, version v1; docs/emulator.md describes it. `source` names
// the file in messages. `strict` holds where the file does not say.
NodeResult<Topology> ParseTopology(const std::string& text, std::string_view source,
                                   const Strictness& strict = {});

}  // namespace torpor::emulator
