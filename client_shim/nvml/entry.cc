#include "client_shim/nvml/entry.h"

#include <atomic>
#include <string>

#include "client_shim/core/client_core.h"
#include "client_shim/nvml/devices.h"
#include "client_shim/unsupported.h"

namespace torpor::shim {
namespace {

std::atomic<int> initializations{0};

}  // namespace

nvmlReturn_t ToNvml(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return NVML_SUCCESS;
    case cudaErrorNoDevice:
      return NVML_ERROR_DRIVER_NOT_LOADED;
    case cudaErrorInsufficientDriver:
      return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    case cudaErrorSharedObjectInitFailed:
      return NVML_ERROR_LIBRARY_NOT_FOUND;
    case cudaErrorMemoryAllocation:
      return NVML_ERROR_MEMORY;
    case cudaErrorDevicesUnavailable:
      return NVML_ERROR_GPU_IS_LOST;
    default:
      return NVML_ERROR_UNKNOWN;
  }
}

nvmlReturn_t Initialize() {
  if (!IsInitialized()) TORPOR_NVML_TRY(LearnDevices());
  ++initializations;
  return NVML_SUCCESS;
}

nvmlReturn_t Shutdown() {
  int before = initializations;
  while (before > 0 && !initializations.compare_exchange_weak(before, before - 1)) {
  }
  return before > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

bool IsInitialized() { return initializations > 0; }

int Unsupported(const char* symbol) {
  torpor_client_core()->WarnOnce(symbol, std::string(symbol) +
                                             " is not supported by Torpor; it returned"
                                             " NVML_ERROR_NOT_SUPPORTED (build/docs/coverage.md)");
  return NVML_ERROR_NOT_SUPPORTED;
}

}  // namespace torpor::shim
