#pragma once

#include <optional>
#include <string_view>

#include "emulator/node/node_result.h"

namespace YAML {
class Node;
}

namespace torpor::emulator {

class DocumentReader;

// What cuMemAddressReserve does with a hint at free addresses.
enum class AddressHints { kHonoured, kElsewhere, kRefused };

// Points in which the emulated driver is as strict as NVIDIA's; docs/emulator.md explains each. By
// default the driver forgives.
struct Strictness {
  bool host_registrations = false;  // a copy's host memory is one registration, or none
  // If set, new memory also has other bytes than zeros.
  std::optional<AddressHints> addresses = std::nullopt;
  bool hidden_faults = false;     // an idle stream reveals no fault of another stream
  bool memory_overheads = false;  // contexts, code, handles and stacks take memory; limits freeze
  bool log_failures = false;      // every failing call goes to the log callbacks
  bool costs = false;             // calls take the times of DriverCosts
  bool launch_queues = false;     // lazy loading, bounded queues, one thread for host functions

  static Strictness All();

  friend bool operator==(const Strictness&, const Strictness&) = default;
};

// Reads the value of `strict`: true, false, or a mapping of points.
Strictness ReadStrictness(const YAML::Node& node, DocumentReader& reader);

// Parses the value of TORPOR_EMULATOR_STRICT, which is YAML as in a topology file, for example
// "true" or "{hidden_faults: true}". Forgives if the text is empty.
NodeResult<Strictness> ParseStrictness(std::string_view text);

}  // namespace torpor::emulator
