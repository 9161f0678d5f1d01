#include "emulator/node/driver_faults.h"

#include <yaml-cpp/yaml.h>

#include "emulator/node/byte_size.h"
#include "emulator/node/document_reader.h"

namespace torpor::emulator {
namespace {

constexpr const char* kExports = "exports";
constexpr const char* kMemoryEnds = "memory_ends_at";

bool ReadExports(const YAML::Node& value, DocumentReader& reader) {
  if (!value) return false;
  if (value.IsScalar() && value.Scalar() == "refused") return true;
  reader.Fail(value, "'exports' can only be refused; leave it out otherwise");
  return false;
}

std::optional<Bytes> ReadEnd(const YAML::Node& value, DocumentReader& reader) {
  if (!value) return std::nullopt;
  const auto bytes = ParseBytes(value.IsScalar() ? value.Scalar() : "");
  if (bytes.ok()) return *bytes;
  reader.Fail(value, bytes.failure().message);
  return std::nullopt;
}

}  // namespace

DriverFaults ReadDriverFaults(const YAML::Node& node, DocumentReader& reader) {
  DriverFaults faults;
  if (!node || !reader.CheckKeys(node, {kExports, kMemoryEnds, "calls", "links", "disk"}))
    return faults;
  faults.refuses_exports = ReadExports(node[kExports], reader);
  faults.memory_ends_at = ReadEnd(node[kMemoryEnds], reader);
  return faults;
}

}  // namespace torpor::emulator
