#pragma once

#include <string_view>

namespace torpor::emulator {

// Whether a device function without a body is one that a GPU's system has: those that codegen
// knows, and the device runtime's, which make the kernel that calls them an unsupported one.
bool IsSystemFunction(std::string_view name);

// The device runtime (libcudadevrt): what kernels that launch kernels call.
bool IsDeviceRuntimeFunction(std::string_view name);

}  // namespace torpor::emulator
