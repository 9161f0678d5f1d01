#include "emulator/node/topology.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "emulator/node/byte_size.h"
#include "emulator/node/document_reader.h"

namespace torpor::emulator {
namespace {

constexpr NumberRange kGbps = {0.001, 100'000};
constexpr NumberRange kTimeScale = {0.001, 1000};
constexpr NumberRange kKernelUs = {0, 1e9};
constexpr NumberRange kCopyUs = {0, 1e6};
constexpr unsigned kMaxLinks = 64;

std::vector<PcieSwitch> ReadSwitches(const YAML::Node& list, DocumentReader& reader) {
  std::vector<PcieSwitch> switches;
  if (!list || !reader.CheckList(list, "pcie_switches")) return switches;
  if (list.size() > kMaxSwitches) {
    reader.Fail(list, "at most " + std::to_string(kMaxSwitches) + " pcie_switches");
    return switches;
  }
  for (const YAML::Node& node : list) {
    if (!reader.CheckKeys(node, {"name", "gbps"})) return switches;
    const PcieSwitch entry = {reader.Name(node, "name"), reader.Number(node, "gbps", kGbps)};
    for (const PcieSwitch& other : switches) {
      if (other.name == entry.name) reader.Fail(node, "a second switch '" + entry.name + "'");
    }
    switches.push_back(entry);
  }
  return switches;
}

Bytes ReadMemory(const YAML::Node& node, DocumentReader& reader) {
  const YAML::Node value = node["memory"];
  if (!value || !value.IsScalar()) {
    reader.Fail(node, "a GPU needs 'memory', for example 512MiB");
    return kMinGpuMemory;
  }
  const auto memory = ParseBytes(value.Scalar());
  if (!memory.ok()) reader.Fail(value, memory.failure().message);
  if (memory.ok() && *memory >= kMinGpuMemory && *memory <= kMaxGpuMemory) return *memory;
  reader.Fail(value, "memory must be 2MiB to 4096GiB");
  return kMinGpuMemory;
}

// Reads one entry of `gpus`; `count` repeats it.
GpuSpec ReadGpu(const YAML::Node& node, const std::vector<PcieSwitch>& switches,
                DocumentReader& reader) {
  GpuSpec spec;
  if (!reader.CheckKeys(node, {"name", "memory", "pcie_gbps", "pcie_switch", "pageable_gbps",
                               "copy_us", "count", "compute_capability", "multiprocessors"})) {
    return spec;
  }
  if (node["name"]) spec.name = reader.Name(node, "name");
  spec.memory = ReadMemory(node, reader);
  if (node["pcie_switch"]) {
    const std::string name = reader.Name(node, "pcie_switch");
    const auto found = std::find_if(switches.begin(), switches.end(),
                                    [&](const PcieSwitch& entry) { return entry.name == name; });
    if (found == switches.end()) {
      reader.Fail(node["pcie_switch"], "no pcie_switches entry '" + name + "'");
      return spec;
    }
    spec.pcie_switch = static_cast<unsigned>(found - switches.begin());
    spec.pcie_gbps = found->gbps;
  }
  spec.pcie_gbps = reader.Number(node, "pcie_gbps", kGbps, spec.pcie_gbps);
  spec.pageable_gbps = reader.Number(node, "pageable_gbps", kGbps, 0);
  spec.copy_us = reader.Number(node, "copy_us", kCopyUs, 0);
  const double capability = reader.Number(
      node, "compute_capability", {kMinCapability, kMaxCapability}, spec.compute_capability / 10.0);
  spec.compute_capability = static_cast<unsigned>(std::lround(capability * 10));
  if (node["multiprocessors"]) {
    spec.multiprocessors = reader.Count(node["multiprocessors"], "multiprocessors", 1, 1024);
  }
  return spec;
}

// Reads all GPUs and checks their numbers, in total and behind each switch.
std::vector<GpuSpec> ReadGpus(const YAML::Node& root, const std::vector<PcieSwitch>& switches,
                              DocumentReader& reader) {
  std::vector<GpuSpec> gpus;
  if (!root["gpus"]) {
    reader.Fail(root, "needs a list 'gpus'");
    return gpus;
  }
  if (!reader.CheckList(root["gpus"], "gpus")) return gpus;
  std::vector<unsigned> behind(switches.size(), 0);
  for (const YAML::Node& node : root["gpus"]) {
    GpuSpec spec = ReadGpu(node, switches, reader);
    if (reader.failed()) return gpus;
    const unsigned count = node["count"] ? reader.Count(node["count"], "count", 1, kMaxGpus) : 1;
    if (reader.failed()) return gpus;
    if (gpus.size() + count > kMaxGpus) {
      reader.Fail(node, "all GPUs together must be at most " + std::to_string(kMaxGpus));
      return gpus;
    }
    if (spec.pcie_switch && (behind[*spec.pcie_switch] += count) > kMaxGpusOfSwitch) {
      reader.Fail(node, "at most " + std::to_string(kMaxGpusOfSwitch) + " GPUs share a switch");
    }
    for (unsigned i = 0; i < count; ++i) {
      spec.place = static_cast<unsigned>(gpus.size());
      gpus.push_back(spec);
    }
  }
  return gpus;
}

using LinkMatrix = std::vector<std::vector<unsigned>>;

// Reads a full matrix of links, which must be symmetric.
void ReadMatrix(const YAML::Node& rows, LinkMatrix& links, DocumentReader& reader) {
  const std::string size = std::to_string(links.size());
  const std::string shape = "matrix must be " + size + " rows of " + size + " numbers, one a GPU";
  if (!rows.IsSequence() || rows.size() != links.size()) return reader.Fail(rows, shape);
  for (std::size_t i = 0; i < links.size(); ++i) {
    const YAML::Node row = rows[i];
    if (!row.IsSequence() || row.size() != links.size()) return reader.Fail(row, shape);
    for (std::size_t j = 0; j < links.size(); ++j) {
      links[i][j] = reader.Count(row[j], "a number of links", 0, kMaxLinks);
      if (i == j && links[i][j] != 0) reader.Fail(row, "a GPU has no links to itself");
      if (j < i && links[i][j] != links[j][i]) {
        reader.Fail(row, "matrix must be symmetric: links go both ways, but GPUs " +
                             std::to_string(j) + " and " + std::to_string(i) + " disagree");
      }
    }
  }
}

// Reads pairs of GPUs with links between them.
void ReadPairs(const YAML::Node& pairs, LinkMatrix& links, DocumentReader& reader) {
  if (!reader.CheckList(pairs, "pairs")) return;
  const auto last = static_cast<unsigned>(links.size()) - 1;
  for (const YAML::Node& pair : pairs) {
    if (!reader.CheckKeys(pair, {"gpus", "links"})) return;
    const YAML::Node ends = pair["gpus"];
    if (!ends || !ends.IsSequence() || ends.size() != 2) {
      return reader.Fail(pair, "a pair needs two 'gpus', for example [0, 1]");
    }
    const unsigned a = reader.Count(ends[0], "a GPU", 0, last);
    const unsigned b = reader.Count(ends[1], "a GPU", 0, last);
    if (a == b) return reader.Fail(pair, "a pair needs two different 'gpus'");
    if (links[a][b] != 0) return reader.Fail(pair, "these GPUs are a pair already");
    links[a][b] = links[b][a] =
        pair["links"] ? reader.Count(pair["links"], "links", 1, kMaxLinks) : 1;
  }
}

Nvlinks ReadNvlinks(const YAML::Node& node, std::size_t gpus, DocumentReader& reader) {
  Nvlinks nvlinks;
  if (!node || gpus == 0 || !reader.CheckKeys(node, {"gbps_per_link", "matrix", "pairs"})) {
    return nvlinks;
  }
  nvlinks.gbps_per_link = reader.Number(node, "gbps_per_link", kGbps);
  if (static_cast<bool>(node["matrix"]) == static_cast<bool>(node["pairs"])) {
    reader.Fail(node, "nvlinks need either a 'matrix' or 'pairs'");
    return nvlinks;
  }
  nvlinks.links.assign(gpus, std::vector<unsigned>(gpus, 0));
  if (node["matrix"]) ReadMatrix(node["matrix"], nvlinks.links, reader);
  if (node["pairs"]) ReadPairs(node["pairs"], nvlinks.links, reader);
  return nvlinks;
}

std::vector<KernelTime> ReadKernels(const YAML::Node& list, DocumentReader& reader) {
  std::vector<KernelTime> kernels;
  if (!list || !reader.CheckList(list, "kernels")) return kernels;
  for (const YAML::Node& node : list) {
    if (!reader.CheckKeys(node, {"name", "us"})) return kernels;
    kernels.push_back({reader.Name(node, "name"), reader.Number(node, "us", kKernelUs)});
  }
  return kernels;
}

// Reads the document in order of dependence: switches before GPUs, GPUs before links.
Topology ReadDocument(const YAML::Node& root, const Strictness& strict, DocumentReader& reader) {
  Topology topology;
  if (!reader.CheckKeys(root, {"version", "time_scale", "computes", "pcie_switches", "gpus",
                               "nvlinks", "kernels", "strict", "costs", "faults"})) {
    return topology;
  }
  if (!root["version"] || !root["version"].IsScalar() || root["version"].Scalar() != "v1") {
    reader.Fail(root, "needs 'version: v1'");
  }
  topology.time_scale = reader.Number(root, "time_scale", kTimeScale, 1);
  topology.computes = reader.Choice(root, "computes", true);
  topology.switches = ReadSwitches(root["pcie_switches"], reader);
  topology.gpus = ReadGpus(root, topology.switches, reader);
  topology.nvlinks = ReadNvlinks(root["nvlinks"], topology.gpus.size(), reader);
  topology.kernels = ReadKernels(root["kernels"], reader);
  topology.strict = root["strict"] ? ReadStrictness(root["strict"], reader) : strict;
  topology.costs = ReadDriverCosts(root["costs"], reader);
  topology.faults = ReadDriverFaults(root["faults"], reader);
  topology.plan = ReadFaultPlan(root["faults"], topology, reader);
  return topology;
}

}  // namespace

// yaml-cpp reports errors by exceptions, which end here.
NodeResult<Topology> ParseTopology(const std::string& text, std::string_view source,
                                   const Strictness& strict) {
  std::string problem;
  try {
    DocumentReader reader(source);
    Topology topology = ReadDocument(YAML::Load(text), strict, reader);
    if (!reader.failed()) return topology;
    problem = reader.problem();
  } catch (const YAML::Exception& error) {  // yaml-cpp reports by exceptions only
    problem = std::string(source) + ": " + error.what();
  }
  return Failure<NodeError>{NodeError::kInvalid, std::move(problem)};
}

}  // namespace torpor::emulator
