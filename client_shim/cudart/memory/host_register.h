#pragma once

#include <cuda_runtime_api.h>

// Memory of the program's own that it has registered (cudaHostRegister). Copies treat it as
// pageable until the program asks for its device address (cudaHostGetDevicePointer): then its pages
// become pages of the host arena too, which kernels reach at the arena's address.
namespace torpor::shim {

// Whether `pointer` lies in registered memory; `flags` are those of its registration.
bool FindRegistered(const void* pointer, unsigned& flags);
bool IsRegistered(const void* pointer);

// The arena's address of registered memory, which is made visible to kernels if it is not yet.
// cudaErrorNotSupported where its pages cannot be replaced.
cudaError_t ExposeRegistered(const void* pointer, void*& device_pointer);

// The arena's address of memory that kernels see, else the pointer itself.
const void* ArenaAlias(const void* pointer);

// All registered memory is ordinary again, before the session frees all that it has.
cudaError_t UnregisterAll();

}  // namespace torpor::shim
