#pragma once

#include <cuda_runtime_api.h>

// Memory of the program registered by cudaHostRegister. Copies treat registered memory as pageable
// until the program asks for a device address (cudaHostGetDevicePointer). Then the pages become
// pages of the host arena too, and kernels reach them at the arena's address. Thread-safe.
namespace torpor::shim {

// Whether `pointer` lies in registered memory; stores the registration's flags.
bool FindRegistered(const void* pointer, unsigned& flags);
bool IsRegistered(const void* pointer);

// Makes registered memory visible to kernels, once, and gives the arena's address.
// cudaErrorNotSupported if the pages cannot be replaced.
cudaError_t ExposeRegistered(const void* pointer, void*& device_pointer);

// The arena's address of registered memory visible to kernels; any other pointer unchanged.
const void* ArenaAlias(const void* pointer);

// Makes all registered memory ordinary again (cudaDeviceReset). Call before the session frees its
// memory.
cudaError_t UnregisterAll();

}  // namespace torpor::shim
