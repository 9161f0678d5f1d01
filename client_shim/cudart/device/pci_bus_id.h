#pragma once

#include <optional>

namespace torpor::shim {

// The PCI address of a device; the PCI function is always 0.
struct PciBusId {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;

  bool operator==(const PciBusId&) const = default;
};

// Reads "domain:bus:device.function" in hexadecimal, with or without leading zeros. Returns nullopt
// for any other text.
std::optional<PciBusId> ParsePciBusId(const char* text);

}  // namespace torpor::shim
