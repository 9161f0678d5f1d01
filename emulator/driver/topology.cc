#include "emulator/driver/topology.h"

#include <sys/sysinfo.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

namespace torpor::emulator {
namespace {

constexpr int kMaxGpus = 64;
constexpr Bytes kMinMemory = 2 * kMiB;
constexpr Bytes kMaxMemory = kGiB << 12;

TopologyResult<Topology> Invalid(std::string message) {
  return Failure<TopologyError>{TopologyError::kInvalid, std::move(message)};
}

std::string At(std::string_view source, const YAML::Node& node) {
  return std::string(source) + ":" + std::to_string(node.Mark().line + 1) + ": ";
}

// The first key of `node` that is not `known`, or nothing.
std::optional<std::string> UnknownKey(const YAML::Node& node, const std::set<std::string>& known) {
  for (const auto& entry : node) {
    const auto key = entry.first.as<std::string>();
    if (!known.contains(key)) return key;
  }
  return std::nullopt;
}

struct PcieSwitches {
  std::map<std::string, double> gbps;
};

TopologyResult<PcieSwitches> ParseSwitches(const YAML::Node& list, std::string_view source) {
  PcieSwitches switches;
  for (const YAML::Node& entry : list) {
    if (const auto key = UnknownKey(entry, {"name", "gbps"})) {
      return Failure<TopologyError>{TopologyError::kInvalid,
                                    At(source, entry) + "unknown key '" + *key + "'"};
    }
    const double gbps = entry["gbps"].as<double>();
    if (!(gbps > 0) || !std::isfinite(gbps)) {
      return Failure<TopologyError>{TopologyError::kInvalid,
                                    At(source, entry) + "gbps must be above zero"};
    }
    switches.gbps[entry["name"].as<std::string>()] = gbps;
  }
  return switches;
}

// Empty when `spec` makes sense, else what is wrong with it.
std::string ReadGpu(const YAML::Node& node, const PcieSwitches& switches, GpuSpec& spec) {
  if (const auto key = UnknownKey(node, {"name", "memory", "pcie_gbps", "pcie_switch", "count",
                                         "compute_capability", "multiprocessors"})) {
    return "unknown key '" + *key + "'";
  }
  if (node["name"]) spec.name = node["name"].as<std::string>();
  if (!node["memory"]) return "a GPU needs 'memory', for example 512MiB";
  const auto memory = ParseBytes(node["memory"].as<std::string>());
  if (!memory.ok()) return memory.failure().message;
  spec.memory = *memory;
  if (spec.memory < kMinMemory || spec.memory > kMaxMemory) return "memory must be 2MiB to 4096GiB";
  if (node["pcie_gbps"] && node["pcie_switch"]) return "give pcie_gbps or pcie_switch, not both";
  if (node["pcie_gbps"]) {
    spec.pcie_gbps = node["pcie_gbps"].as<double>();
    if (!(spec.pcie_gbps > 0) || !std::isfinite(spec.pcie_gbps)) {
      return "pcie_gbps must be above zero; leave it out for copies that are not paced";
    }
  }
  if (node["pcie_switch"]) {
    spec.pcie_switch = node["pcie_switch"].as<std::string>();
    const auto found = switches.gbps.find(spec.pcie_switch);
    if (found == switches.gbps.end()) return "no pcie_switches entry '" + spec.pcie_switch + "'";
    spec.pcie_gbps = found->second;
  }
  if (node["compute_capability"]) {
    const double capability = node["compute_capability"].as<double>();
    if (!(capability >= 5.0 && capability <= 20.0)) return "compute_capability must be 5.0 to 20.0";
    spec.compute_capability = static_cast<unsigned>(std::lround(capability * 10));
  }
  if (node["multiprocessors"]) spec.multiprocessors = node["multiprocessors"].as<unsigned>();
  if (spec.multiprocessors < 1 || spec.multiprocessors > 1024) {
    return "multiprocessors must be 1 to 1024";
  }
  return {};
}

TopologyResult<Topology> ParseDocument(const YAML::Node& root, std::string_view source) {
  if (!root.IsMap()) return Invalid(std::string(source) + ": not a YAML mapping");
  if (const auto key = UnknownKey(root, {"version", "gpus", "pcie_switches"})) {
    return Invalid(At(source, root) + "unknown key '" + *key + "'");
  }
  if (!root["version"] || root["version"].as<std::string>() != "v1") {
    return Invalid(At(source, root) + "needs 'version: v1'");
  }
  PcieSwitches switches;
  if (root["pcie_switches"]) {
    auto parsed = ParseSwitches(root["pcie_switches"], source);
    if (!parsed.ok()) return parsed.failure();
    switches = std::move(parsed).value();
  }
  if (!root["gpus"] || !root["gpus"].IsSequence()) {
    return Invalid(At(source, root) + "needs a list 'gpus'");
  }
  Topology topology;
  for (const YAML::Node& node : root["gpus"]) {
    GpuSpec spec;
    const std::string problem = ReadGpu(node, switches, spec);
    if (!problem.empty()) return Invalid(At(source, node) + problem);
    const int count = node["count"] ? node["count"].as<int>() : 1;
    const int room = kMaxGpus - static_cast<int>(topology.gpus.size());
    if (count < 1 || count > room) {
      return Invalid(At(source, node) + "count must be at least 1, and all GPUs at most 64");
    }
    for (int i = 0; i < count; ++i) {
      spec.place = static_cast<unsigned>(topology.gpus.size());
      topology.gpus.push_back(spec);
    }
  }
  return topology;
}

TopologyResult<Topology> ReadTopologyFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) {
    return Failure<TopologyError>{TopologyError::kUnreadable,
                                  "cannot read the topology file '" + path + "'"};
  }
  return ParseTopology(text.str(), path);
}

Bytes HalfOfHostMemory() {
  struct sysinfo info {};
  if (sysinfo(&info) != 0) return kGiB;
  return RoundDown(Bytes{info.totalram} * info.mem_unit / 2, 2 * kMiB);
}

}  // namespace

TopologyResult<Bytes> ParseBytes(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, double>, 10> kUnits = {{
      {"", 1},
      {"B", 1},
      {"KiB", 0x1p10},
      {"MiB", 0x1p20},
      {"GiB", 0x1p30},
      {"TiB", 0x1p40},
      {"KB", 1e3},
      {"MB", 1e6},
      {"GB", 1e9},
      {"TB", 1e12},
  }};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto* found = std::find_if(kUnits.begin(), kUnits.end(),
                                   [&](const auto& entry) { return entry.first == unit; });
  if (error != std::errc{} || found == kUnits.end() || !(number >= 0) ||
      number * found->second >= 0x1p63) {
    return Failure<TopologyError>{
        TopologyError::kInvalid,
        "not a number of bytes: '" + std::string(text) + "'; write for example 512MiB"};
  }
  return static_cast<Bytes>(number * found->second);
}

TopologyResult<Topology> ParseTopology(const std::string& text, std::string_view source) {
  try {
    return ParseDocument(YAML::Load(text), source);
  } catch (const YAML::Exception& error) {  // yaml-cpp reports by exceptions only
    return Invalid(std::string(source) + ": " + error.what());
  }
}

Topology SelectVisible(const Topology& topology, std::string_view visible_devices) {
  Topology selected;
  std::set<std::size_t> seen;
  while (!visible_devices.empty()) {
    const std::size_t comma = std::min(visible_devices.find(','), visible_devices.size());
    std::size_t index = topology.gpus.size();
    std::from_chars(visible_devices.data(), visible_devices.data() + comma, index);
    if (index >= topology.gpus.size() || !seen.insert(index).second) break;
    selected.gpus.push_back(topology.gpus[index]);
    visible_devices.remove_prefix(std::min(comma + 1, visible_devices.size()));
  }
  return selected;
}

TopologyResult<Topology> TopologyFromEnvironment() {
  Topology topology;
  if (const char* path = std::getenv("TORPOR_EMULATOR_TOPOLOGY"); path != nullptr && *path != 0) {
    auto parsed = ReadTopologyFile(path);
    if (!parsed.ok()) return parsed;
    topology = std::move(parsed).value();
  } else {
    std::size_t count = 1;
    if (const char* gpus = std::getenv("TORPOR_EMULATOR_GPUS"); gpus != nullptr) {
      const auto [end, error] = std::from_chars(gpus, gpus + std::strlen(gpus), count);
      if (error != std::errc() || *end != 0 || count < 1 || count > kMaxGpus) {
        return Invalid("TORPOR_EMULATOR_GPUS must be 1 to 64, not '" + std::string(gpus) + "'");
      }
    }
    GpuSpec spec;
    spec.memory = std::max(RoundDown(HalfOfHostMemory() / count, kMinMemory), kMinMemory);
    if (const char* memory = std::getenv("TORPOR_EMULATOR_MEMORY"); memory != nullptr) {
      const auto bytes = ParseBytes(memory);
      if (!bytes.ok() || *bytes < kMinMemory || *bytes > kMaxMemory) {
        return Invalid("TORPOR_EMULATOR_MEMORY must be 2MiB to 4096GiB, not '" +
                       std::string(memory) + "'");
      }
      spec.memory = *bytes;
    }
    for (; topology.gpus.size() < count; ++spec.place) topology.gpus.push_back(spec);
  }
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible != nullptr) {
    return SelectVisible(topology, visible);
  }
  return topology;
}

}  // namespace torpor::emulator
