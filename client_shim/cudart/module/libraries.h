#pragma once

#include <cuda_runtime_api.h>

// Modules loaded at run time (cudaLibraryLoadData and related calls). libcuda.so.1 builds its
// modules on top.
namespace torpor::shim {

// Finds the library of a kernel loaded at run time. cudaErrorNotSupported for a kernel registered
// by nvcc's code, whose module has no handle.
cudaError_t FindLibraryOf(const void* function, cudaLibrary_t& library);

}  // namespace torpor::shim
