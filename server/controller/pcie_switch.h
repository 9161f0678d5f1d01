#pragma once

#include <optional>
#include <string>

namespace torpor::server {

// Returns a number shared by all GPUs behind the same PCIe switch, from a PCI bus id of CUDA's
// form, "0000:3b:00.0". Returns nullopt if unknown.

// Takes the root port above the GPU's switches, from sysfs. `devices` is sysfs's folder of PCI
// devices.
std::optional<int> PcieSwitchOf(const std::string& pci_bus_id,
                                const std::string& devices = "/sys/bus/pci/devices");

// Follows the emulator's numbering of buses (docs/emulator.md).
std::optional<int> EmulatedPcieSwitchOf(const std::string& pci_bus_id);

}  // namespace torpor::server
