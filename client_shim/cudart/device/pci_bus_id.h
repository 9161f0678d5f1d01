#pragma once

#include <optional>

namespace torpor::shim {

// Of a device; its function is 0.
struct PciBusId {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;

  bool operator==(const PciBusId&) const = default;
};

// "domain:bus:device.function" in hexadecimal, which programs write with or without zeros in front.
// Nothing for another text.
std::optional<PciBusId> ParsePciBusId(const char* text);

}  // namespace torpor::shim
