#pragma once

#include <cuda_runtime_api.h>

#include "client_shim/c_entry.h"
#include "client_shim/nvml/nvml_api.h"

// What every entry of NVML is: Always or Initialized around a lambda. `entry` names it for a trace.
namespace torpor::shim {

nvmlReturn_t ToNvml(cudaError_t error);

// Initialisations are counted; so many shutdowns end them. The first one asks which devices there
// are. No session is opened: a program may look here which devices there are and leave CUDA to its
// forked children, or set CUDA_VISIBLE_DEVICES afterwards.
nvmlReturn_t Initialize();
nvmlReturn_t Shutdown();
bool IsInitialized();

template <typename Body>
nvmlReturn_t Always(Body&& body, const char* entry = __builtin_FUNCTION()) noexcept {
  return WithoutExceptions<NVML_ERROR_MEMORY>(body, entry);
}

template <typename Body>
nvmlReturn_t Initialized(Body&& body, const char* entry = __builtin_FUNCTION()) noexcept {
  return IsInitialized() ? Always(body, entry) : NVML_ERROR_UNINITIALIZED;
}

}  // namespace torpor::shim

// In a function that returns an nvmlReturn_t: passes a failure on.
#define TORPOR_NVML_TRY(expression)                                                   \
  if (const nvmlReturn_t torpor_result = (expression); torpor_result != NVML_SUCCESS) \
  return torpor_result
