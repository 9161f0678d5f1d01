#include "tools/sim/node_model.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace torpor::sim {

extern const char kPaperFourGpus[];
extern const char kPaperOneGpu[];
extern const char kNvswitchEightGpus[];
extern const char kUnlinkedTwoGpus[];

namespace {

// Bytes a second of a link without a rate in the topology: never the bottleneck.
constexpr double kUnpaced = 1e12;

// Converts GB/s to bytes a second; 0 in a topology means no limit.
double Rate(double gbps) { return gbps > 0 ? gbps * 1e9 : kUnpaced; }

// A topology built into the program: a file of deploy/topologies.
struct Preset {
  std::string_view name;
  const char* text;
};

// Returns null for an unknown name.
const char* PresetNamed(std::string_view name) {
  static constexpr Preset kPresets[] = {{"paper-4gpu", kPaperFourGpus},
                                        {"paper-1gpu", kPaperOneGpu},
                                        {"nvswitch-8gpu", kNvswitchEightGpus},
                                        {"unlinked-2gpu", kUnlinkedTwoGpus}};
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return preset.text;
  }
  return nullptr;
}

// Returns the file's contents. The error of an unreadable file lists the built-in topologies.
absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (file) return text.str();
  return absl::NotFoundError(
      absl::StrCat(path, ": neither a topology file nor one of paper-4gpu, paper-1gpu, ",
                   "nvswitch-8gpu, unlinked-2gpu"));
}

// Fills in the bandwidths between GPUs, and sorts each GPU's sources by bandwidth; equal ones stay
// in the order of their indices.
void AddNvlinks(const emulator::Topology& topology, NodeModel* node) {
  const std::size_t count = node->gpus.size();
  for (std::size_t i = 0; i < count; ++i) {
    NodeModel::Gpu& gpu = node->gpus[i];
    for (std::size_t j = 0; j < count; ++j) {
      const unsigned links =
          topology.nvlinks.Between(static_cast<unsigned>(i), static_cast<unsigned>(j));
      gpu.nvlink_bytes_per_s.push_back(links * topology.nvlinks.gbps_per_link * 1e9);
      if (links > 0) gpu.sources.push_back(GpuIndex{static_cast<std::int32_t>(j)});
    }
    std::stable_sort(gpu.sources.begin(), gpu.sources.end(), [&](GpuIndex a, GpuIndex b) {
      return gpu.nvlink_bytes_per_s[static_cast<std::size_t>(a.value)] >
             gpu.nvlink_bytes_per_s[static_cast<std::size_t>(b.value)];
    });
  }
}

}  // namespace

absl::StatusOr<NodeModel> MakeNodeModel(const emulator::Topology& topology, Bytes reserved) {
  NodeModel node;
  for (const emulator::PcieSwitch& entry : topology.switches) {
    node.switches.push_back({Rate(entry.gbps), {}});  // NOLINT: a handful of them
  }
  for (const emulator::GpuSpec& spec : topology.gpus) {
    if (spec.memory <= reserved) {
      return absl::InvalidArgumentError(
          absl::StrCat("GPU ", spec.place, " has no more memory than the profiles reserve"));
    }
    NodeModel::Gpu gpu;
    gpu.capacity = spec.memory - reserved;
    gpu.pcie_bytes_per_s = Rate(spec.pcie_gbps);
    if (!spec.pcie_switch) node.switches.push_back({gpu.pcie_bytes_per_s, {}});  // NOLINT
    gpu.pcie_switch = spec.pcie_switch ? *spec.pcie_switch : node.switches.size() - 1;
    NodeModel::Switch& behind = node.switches[gpu.pcie_switch];
    gpu.place_behind_switch = behind.gpu_links.size();
    behind.gpu_links.push_back(gpu.pcie_bytes_per_s);
    node.gpus.push_back(std::move(gpu));  // NOLINT: at most 64
  }
  AddNvlinks(topology, &node);
  return node;
}

absl::StatusOr<NodeModel> ReadNodeModel(const std::string& file_or_name, Bytes reserved) {
  std::string text;
  if (const char* preset = PresetNamed(file_or_name)) {
    text = preset;
  } else {
    TORPOR_ASSIGN_OR_RETURN(text, ReadText(file_or_name));
  }
  const auto topology = emulator::ParseTopology(text, file_or_name);
  if (!topology.ok()) return absl::InvalidArgumentError(topology.failure().message);
  return MakeNodeModel(*topology, reserved);
}

}  // namespace torpor::sim
