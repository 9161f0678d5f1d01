#include "emulator/node/driver_costs.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "emulator/node/byte_size.h"
#include "emulator/node/document_reader.h"

namespace torpor::emulator {
namespace {

constexpr NumberRange kCost = {0, 1e6};
constexpr Bytes kContextMemory = 527 * kMiB;
constexpr Bytes kContextShare = 8;
constexpr Bytes kCublasMemory = 64 * kMiB;
constexpr Bytes kCublasShare = 128;

std::optional<Bytes> ReadBytes(const YAML::Node& node, const char* key, DocumentReader& reader) {
  const YAML::Node value = node[key];
  if (!value) return std::nullopt;
  const auto bytes = ParseBytes(value.IsScalar() ? value.Scalar() : "");
  if (bytes.ok()) return *bytes;
  reader.Fail(value, bytes.failure().message);
  return std::nullopt;
}

VirtualMemoryCosts ReadVmm(const YAML::Node& node, DocumentReader& reader) {
  VirtualMemoryCosts vmm;
  if (!node ||
      !reader.CheckKeys(node, {"create", "map", "set_access", "unmap", "export", "import"})) {
    return vmm;
  }
  vmm.create_us = reader.Number(node, "create", kCost, vmm.create_us);
  vmm.map_us = reader.Number(node, "map", kCost, vmm.map_us);
  vmm.set_access_us = reader.Number(node, "set_access", kCost, vmm.set_access_us);
  vmm.unmap_us = reader.Number(node, "unmap", kCost, vmm.unmap_us);
  vmm.export_us = reader.Number(node, "export", kCost, vmm.export_us);
  vmm.import_us = reader.Number(node, "import", kCost, vmm.import_us);
  return vmm;
}

}  // namespace

Bytes DriverCosts::ContextMemory(Bytes gpu_memory) const {
  return context_memory.value_or(std::min(kContextMemory, gpu_memory / kContextShare));
}

Bytes DriverCosts::CublasMemory(Bytes gpu_memory) const {
  return cublas_memory.value_or(std::min(kCublasMemory, gpu_memory / kCublasShare));
}

DriverCosts ReadDriverCosts(const YAML::Node& node, DocumentReader& reader) {
  DriverCosts costs;
  if (!node || !reader.CheckKeys(node, {"vmm_us", "pin_ms_per_gib", "launch_us", "copy_call_us",
                                        "module_ms", "context_memory", "cublas_memory"})) {
    return costs;
  }
  costs.vmm = ReadVmm(node["vmm_us"], reader);
  costs.pin_ms_per_gib = reader.Number(node, "pin_ms_per_gib", kCost, costs.pin_ms_per_gib);
  costs.launch_us = reader.Number(node, "launch_us", kCost, costs.launch_us);
  costs.copy_call_us = reader.Number(node, "copy_call_us", kCost, costs.copy_call_us);
  costs.module_ms = reader.Number(node, "module_ms", kCost, costs.module_ms);
  costs.context_memory = ReadBytes(node, "context_memory", reader);
  costs.cublas_memory = ReadBytes(node, "cublas_memory", reader);
  return costs;
}

}  // namespace torpor::emulator
