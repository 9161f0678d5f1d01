#pragma once

#include <string_view>

namespace torpor::emulator {

// Whether a GPU's system provides the device function `name`, so that a module need not define the
// function. Codegen translates some calls; a call of the device runtime makes the kernel
// unsupported.
bool IsSystemFunction(std::string_view name);

// Whether `name` belongs to the device runtime (libcudadevrt), used to launch kernels from kernels.
bool IsDeviceRuntimeFunction(std::string_view name);

}  // namespace torpor::emulator
