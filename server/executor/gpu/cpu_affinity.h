#pragma once

#include <sched.h>

#include <optional>
#include <string>
#include <string_view>

namespace torpor::executor {

// Parses the kernel's list of CPUs, such as "0-3,8". nullopt for any other text.
std::optional<cpu_set_t> ParseCpuList(std::string_view text);

// Runs the calling thread and later threads on the CPUs nearest to a PCI device, as far as the
// process may use those CPUs, so that copies do not cross the sockets' link. `pci_bus_id` is the
// driver's, such as "0000:3B:00.0"; `devices` is the kernel's folder of PCI devices. Returns the
// number of CPUs; 0, with all as before, if the kernel names none that may be used.
int RunNearDevice(const std::string& pci_bus_id,
                  const std::string& devices = "/sys/bus/pci/devices");

}  // namespace torpor::executor
