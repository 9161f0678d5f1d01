#pragma once

#include <optional>
#include <string>

namespace torpor::server {

// Which GPUs share their way to the host: those of the same number. From what CUDA calls their PCI
// bus ids, "0000:3b:00.0". Nothing where it cannot be told.

// By the root port to which the GPU's switches lead. `devices` is where Linux says so.
std::optional<int> PcieSwitchOf(const std::string& pci_bus_id,
                                const std::string& devices = "/sys/bus/pci/devices");

// As the emulator numbers its buses (docs/emulator.md).
std::optional<int> EmulatedPcieSwitchOf(const std::string& pci_bus_id);

}  // namespace torpor::server
