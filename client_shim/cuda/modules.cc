#include "client_shim/cuda/modules.h"

#include "client_shim/cuda/entry.h"

namespace torpor::shim {

CUresult LoadModuleFile(CUmodule* module, const char* path) {
  if (!module) return CUDA_ERROR_INVALID_VALUE;
  cudaLibrary_t library = nullptr;
  TORPOR_CU_TRY(
      Runtime().cudaLibraryLoadFromFile(&library, path, nullptr, nullptr, 0, nullptr, nullptr, 0));
  return GetModule(module, library);
}

CUresult LoadModuleData(CUmodule* module, const void* code, unsigned option_count,
                        CUjit_option* options, void** values) {
  if (!module) return CUDA_ERROR_INVALID_VALUE;
  cudaLibrary_t library = nullptr;
  TORPOR_CU_TRY(Runtime().cudaLibraryLoadData(&library, code, AsRuntime(options), values,
                                              option_count, nullptr, nullptr, 0));
  return GetModule(module, library);
}

CUresult GetLoadingMode(CUmoduleLoadingMode* mode) {
  if (!mode) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult GetGlobal(CUdeviceptr* address, std::size_t* bytes, cudaLibrary_t library,
                   const char* name) {
  return ToCuResult(Runtime().cudaLibraryGetGlobal(AsPointers(address), bytes, library, name));
}

CUresult GetModuleFunction(CUfunction* function, cudaLibrary_t library, const char* name) {
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  cudaKernel_t kernel = nullptr;
  const cudaError_t error = Runtime().cudaLibraryGetKernel(&kernel, library, name);
  *function = reinterpret_cast<CUfunction>(kernel);
  return ToCuResult(error);
}

CUresult GetModule(CUmodule* module, CUlibrary library) {
  if (!module || !library) return CUDA_ERROR_INVALID_VALUE;
  *module = reinterpret_cast<CUmodule>(library);
  return CUDA_SUCCESS;
}

CUresult GetFunction(CUfunction* function, CUkernel kernel) {
  if (!function || !kernel) return CUDA_ERROR_INVALID_VALUE;
  *function = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}

CUresult GetLibrary(CUlibrary* library, CUkernel kernel) {
  if (!library) return CUDA_ERROR_INVALID_VALUE;
  return ToCuResult(Seam().find_library_of(kernel, *library));
}

CUresult GetModuleOf(CUmodule* module, CUfunction function) {
  if (!module) return CUDA_ERROR_INVALID_VALUE;
  cudaLibrary_t library = nullptr;
  TORPOR_CU_TRY(Seam().find_library_of(function, library));
  return GetModule(module, library);
}

}  // namespace torpor::shim
