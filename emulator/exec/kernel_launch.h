#pragma once

#include <cstdint>

#include "emulator/exec/kernel.h"
#include "emulator/exec/program.h"

namespace torpor::emulator {

// Runs the whole grid and returns after the last block, as Program::Launch does. `symbols` are the
// addresses of the variables of the kernel's module, by index.
ExecResult<void> LaunchKernel(Kernel& kernel, const LaunchConfig& config,
                              const DeviceTraits& traits, DeviceMemory& memory,
                              const std::uint64_t* symbols);

}  // namespace torpor::emulator
