#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>

// Modules, libraries and functions, which are the runtime's objects: a CUmodule is a cudaLibrary_t,
// a CUfunction a cudaKernel_t.
namespace torpor::shim {

inline cudaLibrary_t AsLibrary(CUmodule module) { return reinterpret_cast<cudaLibrary_t>(module); }
inline cudaKernel_t* AsKernels(CUfunction* functions) {
  return reinterpret_cast<cudaKernel_t*>(functions);
}
// Both enumerations have the same numbers.
inline cudaJitOption* AsRuntime(CUjit_option* options) {
  return reinterpret_cast<cudaJitOption*>(options);
}

// Load PTX, a cubin or a fatbin as a module. The values of options are the runtime's.
CUresult LoadModuleFile(CUmodule* module, const char* path);
CUresult LoadModuleData(CUmodule* module, const void* code, unsigned option_count,
                        CUjit_option* options, void** values);
// Always CU_MODULE_LAZY_LOADING.
CUresult GetLoadingMode(CUmoduleLoadingMode* mode);
// Gives null if there is no such function.
CUresult GetModuleFunction(CUfunction* function, cudaLibrary_t library, const char* name);
// The address and size in bytes of a __device__ or __constant__ variable.
CUresult GetGlobal(CUdeviceptr* address, std::size_t* bytes, cudaLibrary_t library,
                   const char* name);
// Convert between the driver's kinds of handles; null is CUDA_ERROR_INVALID_VALUE.
CUresult GetModule(CUmodule* module, CUlibrary library);
CUresult GetFunction(CUfunction* function, CUkernel kernel);
CUresult GetLibrary(CUlibrary* library, CUkernel kernel);
// The module that contains `function`.
CUresult GetModuleOf(CUmodule* module, CUfunction function);

}  // namespace torpor::shim
