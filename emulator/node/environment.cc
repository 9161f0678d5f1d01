#include "emulator/node/environment.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "emulator/node/byte_size.h"

namespace torpor::emulator {
namespace {

// Returns the value of an environment variable, or an empty text.
std::string_view Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

// Rounded down to the unit of GPU memory; 1 GiB if the kernel does not tell.
Bytes HalfOfHostMemory() {
  struct sysinfo info {};
  if (sysinfo(&info) != 0) return kGiB;
  return RoundDown(Bytes{info.totalram} * info.mem_unit / 2, kMinGpuMemory);
}

// The description of a node from a file is the file's text.
NodeResult<DescribedNode> NodeOfFile(const std::string& path, const Strictness& strict) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || std::filesystem::is_directory(path)) {  // which can be opened
    return Failure<NodeError>{
        NodeError::kUnreadable,
        "cannot read the topology file '" + path + "', which TORPOR_EMULATOR_TOPOLOGY names"};
  }
  auto topology = ParseTopology(text.str(), path, strict);
  if (!topology.ok()) return topology.failure();
  return DescribedNode{
      .topology = std::move(topology).value(), .description = text.str(), .gpus = {}};
}

Failure<NodeError> InvalidVariable(std::string_view name, std::string_view expected,
                                   std::string_view text) {
  return {NodeError::kInvalid, std::string(name) + " must be " + std::string(expected) + ", not '" +
                                   std::string(text) + "'"};
}

// Parses all of `text`; nullopt if `text` is not a number.
template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

NodeResult<unsigned> GpuCount() {
  constexpr const char* kName = "TORPOR_EMULATOR_GPUS";
  const std::string_view text = Variable(kName);
  if (text.empty()) return 1U;
  const auto count = ParseNumber<unsigned>(text);
  if (!count || *count < 1 || *count > kMaxGpus) return InvalidVariable(kName, "1 to 64", text);
  return *count;
}

// The memory of each GPU, by default an equal share of half of the host's memory.
NodeResult<Bytes> MemoryOfEachOf(unsigned gpus) {
  constexpr const char* kName = "TORPOR_EMULATOR_MEMORY";
  const std::string_view text = Variable(kName);
  if (text.empty()) {
    return std::max(RoundDown(HalfOfHostMemory() / gpus, kMinGpuMemory), kMinGpuMemory);
  }
  const auto bytes = ParseBytes(text);
  if (!bytes.ok() || *bytes < kMinGpuMemory || *bytes > kMaxGpuMemory) {
    return InvalidVariable(kName, "2MiB to 4096GiB", text);
  }
  return *bytes;
}

NodeResult<unsigned> ComputeCapability() {
  constexpr const char* kName = "TORPOR_EMULATOR_COMPUTE_CAPABILITY";
  const std::string_view text = Variable(kName);
  if (text.empty()) return GpuSpec().compute_capability;
  const auto capability = ParseNumber<double>(text);
  if (!capability || !(*capability >= kMinCapability && *capability <= kMaxCapability)) {
    return InvalidVariable(kName, "5.0 to 20.0", text);
  }
  return static_cast<unsigned>(std::lround(*capability * 10));
}

// The description of the node sums up the values of the variables.
NodeResult<DescribedNode> NodeOfVariables(const Strictness& strict) {
  const auto count = GpuCount();
  if (!count.ok()) return count.failure();
  const auto memory = MemoryOfEachOf(*count);
  if (!memory.ok()) return memory.failure();
  const auto capability = ComputeCapability();
  if (!capability.ok()) return capability.failure();
  GpuSpec spec;
  spec.memory = *memory;
  spec.compute_capability = *capability;
  DescribedNode node;
  node.topology.strict = strict;
  node.description = std::to_string(*count) + " GPUs of " + std::to_string(spec.memory) +
                     " bytes and compute capability " + std::to_string(spec.compute_capability);
  for (; spec.place < *count; ++spec.place) node.topology.gpus.push_back(spec);
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
  const auto strict = ParseStrictness(Variable("TORPOR_EMULATOR_STRICT"));
  if (!strict.ok()) return strict.failure();
  const std::string path(Variable("TORPOR_EMULATOR_TOPOLOGY"));
  auto node = path.empty() ? NodeOfVariables(*strict) : NodeOfFile(path, *strict);
  if (!node.ok()) return node;
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  node->gpus =
      visible == nullptr ? node->topology.gpus : SelectVisible(node->topology.gpus, visible);
  return node;
}

}  // namespace torpor::emulator
