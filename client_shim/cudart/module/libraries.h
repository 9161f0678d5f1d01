#pragma once

#include <cuda_runtime_api.h>

// Modules that a program loads at run time (cudaLibraryLoadData and its sisters), on which
// libcuda.so.1 builds its own.
namespace torpor::shim {

// The library of a kernel that was loaded. cudaErrorNotSupported for one that nvcc's code has
// registered: what that belongs to has no handle.
cudaError_t FindLibraryOf(const void* function, cudaLibrary_t& library);

}  // namespace torpor::shim
