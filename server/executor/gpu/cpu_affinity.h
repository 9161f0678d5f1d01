#pragma once

#include <sched.h>

#include <optional>
#include <string>
#include <string_view>

namespace torpor::executor {

// Parses the kernel's list of CPUs, such as "0-3,8". nullopt for any other text.
std::optional<cpu_set_t> ParseCpuList(std::string_view text);

// Runs the calling thread and later threads on the CPUs of a PCI device's NUMA node, as far as the
// process may use those CPUs, so that copies do not cross the sockets' link; memory that the
// threads touch first lies on the node, too. `pci_bus_id` is the driver's, such as "0000:3B:00.0";
// `devices` is the kernel's folder of PCI devices. Returns the number of CPUs; 0, with all as
// before, if the kernel knows no node of the device, or only CPUs that may not be used, or if there
// is nothing to choose.
int RunNearDevice(const std::string& pci_bus_id,
                  const std::string& devices = "/sys/bus/pci/devices");

}  // namespace torpor::executor
