#include "client_shim/cuda/entry.h"

#include <atomic>
#include <string>

#include "client_shim/cuda/contexts.h"
#include "client_shim/cuda/initialization.h"
#include "client_shim/unsupported.h"

namespace torpor::shim {
namespace {

// Set by cuInit. The runtime's use of the process counts as initialisation, too.
std::atomic<bool> is_initialized{false};

}  // namespace

// Converts the errors of the runtime that the driver API reports under another code.
CUresult ToCuResult(cudaError_t error) {
  switch (error) {
    case cudaErrorInvalidSymbol:
      return CUDA_ERROR_NOT_FOUND;
    case cudaErrorInvalidDeviceFunction:
      return CUDA_ERROR_INVALID_HANDLE;
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidPitchValue:
    case cudaErrorInvalidHostPointer:
    case cudaErrorInvalidDevicePointer:
    case cudaErrorInvalidMemcpyDirection:
      return CUDA_ERROR_INVALID_VALUE;
    default:
      return static_cast<CUresult>(error);
  }
}

CUresult Initialize(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  int count = 0;
  TORPOR_CU_TRY(Runtime().cudaGetDeviceCount(&count));
  is_initialized = true;
  return CUDA_SUCCESS;
}

CUresult CheckInitialized() {
  return is_initialized || Seam().process_uses_runtime() ? CUDA_SUCCESS
                                                         : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult CheckContext() {
  TORPOR_CU_TRY(CheckInitialized());
  return CheckCurrentContext();
}

CUresult Refuse(const char* what) {
  torpor_client_core()->WarnOnce(what, std::string(what) +
                                           " is not supported by Torpor; the call returned"
                                           " CUDA_ERROR_NOT_SUPPORTED (build/docs/coverage.md)");
  return CUDA_ERROR_NOT_SUPPORTED;
}

int Unsupported(const char* symbol) { return Refuse(symbol); }

}  // namespace torpor::shim
