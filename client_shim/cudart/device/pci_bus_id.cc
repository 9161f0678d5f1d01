#include "client_shim/cudart/device/pci_bus_id.h"

#include <cstdio>

namespace torpor::shim {

std::optional<PciBusId> ParsePciBusId(const char* text) {
  PciBusId id;
  if (std::sscanf(text, "%x:%x:%x", &id.domain, &id.bus, &id.device) != 3) return std::nullopt;
  return id;
}

}  // namespace torpor::shim
