#include "emulator/node/environment.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "emulator/node/byte_size.h"

namespace torpor::emulator {
namespace {

std::string_view Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

Bytes HalfOfHostMemory() {
  struct sysinfo info {};
  if (sysinfo(&info) != 0) return kGiB;
  return RoundDown(Bytes{info.totalram} * info.mem_unit / 2, kMinGpuMemory);
}

NodeResult<DescribedNode> NodeOfFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || std::filesystem::is_directory(path)) {  // which can be opened
    return Failure<NodeError>{
        NodeError::kUnreadable,
        "cannot read the topology file '" + path + "', which TORPOR_EMULATOR_TOPOLOGY names"};
  }
  auto topology = ParseTopology(text.str(), path);
  if (!topology.ok()) return topology.failure();
  return DescribedNode{
      .topology = std::move(topology).value(), .description = text.str(), .gpus = {}};
}

NodeResult<DescribedNode> NodeOfCount(std::string_view gpus, std::string_view memory) {
  unsigned count = 1;
  if (!gpus.empty()) {
    const auto [end, error] = std::from_chars(gpus.data(), gpus.data() + gpus.size(), count);
    if (error != std::errc() || end != gpus.data() + gpus.size() || count < 1 || count > kMaxGpus) {
      return Failure<NodeError>{NodeError::kInvalid, "TORPOR_EMULATOR_GPUS must be 1 to 64, not '" +
                                                         std::string(gpus) + "'"};
    }
  }
  GpuSpec spec;
  spec.memory = std::max(RoundDown(HalfOfHostMemory() / count, kMinGpuMemory), kMinGpuMemory);
  if (!memory.empty()) {
    const auto bytes = ParseBytes(memory);
    if (!bytes.ok() || *bytes < kMinGpuMemory || *bytes > kMaxGpuMemory) {
      return Failure<NodeError>{
          NodeError::kInvalid,
          "TORPOR_EMULATOR_MEMORY must be 2MiB to 4096GiB, not '" + std::string(memory) + "'"};
    }
    spec.memory = *bytes;
  }
  DescribedNode node;
  node.description = std::to_string(count) + " GPUs of " + std::to_string(spec.memory) + " bytes";
  for (; spec.place < count; ++spec.place) node.topology.gpus.push_back(spec);
  return node;
}

}  // namespace

std::vector<GpuSpec> SelectVisible(const std::vector<GpuSpec>& gpus,
                                   std::string_view visible_devices) {
  std::vector<GpuSpec> selected;
  std::set<std::size_t> seen;
  while (!visible_devices.empty()) {
    const std::size_t comma = std::min(visible_devices.find(','), visible_devices.size());
    std::size_t index = gpus.size();
    const char* const word_end = visible_devices.data() + comma;
    const auto [end, error] = std::from_chars(visible_devices.data(), word_end, index);
    if (end != word_end || index >= gpus.size() || !seen.insert(index).second) break;
    selected.push_back(gpus[index]);
    visible_devices.remove_prefix(std::min(comma + 1, visible_devices.size()));
  }
  return selected;
}

NodeResult<DescribedNode> NodeFromEnvironment() {
  const std::string path(Variable("TORPOR_EMULATOR_TOPOLOGY"));
  auto node = path.empty() ? NodeOfCount(Variable("TORPOR_EMULATOR_GPUS"),
                                         Variable("TORPOR_EMULATOR_MEMORY"))
                           : NodeOfFile(path);
  if (!node.ok()) return node;
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  node->gpus =
      visible == nullptr ? node->topology.gpus : SelectVisible(node->topology.gpus, visible);
  return node;
}

}  // namespace torpor::emulator
