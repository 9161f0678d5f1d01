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

CUresult LoadModuleFile(CUmodule* module, const char* path);
CUresult LoadModuleData(CUmodule* module, const void* code, unsigned option_count,
                        CUjit_option* options, void** values);
CUresult GetLoadingMode(CUmoduleLoadingMode* mode);
CUresult GetGlobal(CUdeviceptr* address, std::size_t* bytes, cudaLibrary_t library,
                   const char* name);
CUresult GetModule(CUmodule* module, CUlibrary library);
CUresult GetFunction(CUfunction* function, CUkernel kernel);
CUresult GetLibrary(CUlibrary* library, CUkernel kernel);
CUresult GetModuleOf(CUmodule* module, CUfunction function);

}  // namespace torpor::shim
