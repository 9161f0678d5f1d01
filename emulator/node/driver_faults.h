#pragma once

#include <optional>

#include "base/units.h"

namespace YAML {
class Node;
}

namespace torpor::emulator {

class DocumentReader;

// What the emulated driver fails to do although NVIDIA's documentation promises it, as drivers in
// sandboxes and beside other programs do. Nothing by default.
struct DriverFaults {
  bool refuses_exports = false;  // cuMemExportToShareableHandle fails, whatever attributes say
  // No more than so many bytes of each GPU can be had, although cuMemGetInfo reports all of them.
  std::optional<Bytes> memory_ends_at = std::nullopt;

  friend bool operator==(const DriverFaults&, const DriverFaults&) = default;
};

// Reads the mapping `faults` of a topology file but for the plan (fault_plan.h); without the
// mapping there are none.
DriverFaults ReadDriverFaults(const YAML::Node& node, DocumentReader& reader);

}  // namespace torpor::emulator
