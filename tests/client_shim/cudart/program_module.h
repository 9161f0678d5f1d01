#pragma once

#include <array>
#include <cstdint>

#include "client_shim/cudart/overrides.h"

// What nvcc's host code registers of a program's device code, which here has no kernels inside.
namespace torpor::shim {

inline constexpr std::array<std::uint8_t, 16> kEmptyFatbin = {0x50, 0xED, 0x55, 0xBA, 1, 0, 16, 0};

// As __cudaRegisterFatBinary takes it. Without relocatable parts the version is 1.
struct FatbinWrapper {
  int magic = 0x466243B1;
  int version = 1;
  const void* data = kEmptyFatbin.data();
  const void* const* relocatable = nullptr;  // ends with null
};

// The module's handle; `wrapper` outlives it.
inline void** RegisterModule(const FatbinWrapper& wrapper) {
  return __cudaRegisterFatBinary(const_cast<void*>(static_cast<const void*>(&wrapper)));
}

// `host_function` stands for the kernel `name` in launches.
inline void RegisterKernel(void** module, const char* host_function, const char* name) {
  __cudaRegisterFunction(module, host_function, nullptr, name, -1, nullptr, nullptr, nullptr,
                         nullptr, nullptr);
}

}  // namespace torpor::shim
