#pragma once

#include <cuda_runtime_api.h>

#include "client_shim/c_entry.h"
#include "client_shim/nvml/nvml_api.h"

// The frame of every entry of NVML: Always or Initialized around a lambda. `entry` is the entry's
// name, for a trace.
namespace torpor::shim {

// NVML's error for an error of the client core.
nvmlReturn_t ToNvml(cudaError_t error);

// Counts initialisations; as many shutdowns end NVML's use. The first initialisation asks the
// daemon for the devices. No session is opened: a program may look at the devices here and leave
// CUDA to its forked children, or set CUDA_VISIBLE_DEVICES afterwards.
nvmlReturn_t Initialize();
nvmlReturn_t Shutdown();
bool IsInitialized();

// Runs `body` before nvmlInit too.
template <typename Body>
nvmlReturn_t Always(Body&& body, const char* entry = __builtin_FUNCTION()) noexcept {
  return WithoutExceptions<NVML_ERROR_MEMORY>(body, entry);
}

// Runs `body` if NVML is initialised.
template <typename Body>
nvmlReturn_t Initialized(Body&& body, const char* entry = __builtin_FUNCTION()) noexcept {
  return IsInitialized() ? Always(body, entry) : NVML_ERROR_UNINITIALIZED;
}

}  // namespace torpor::shim

// In a function that returns an nvmlReturn_t: returns a failure of `expression`.
#define TORPOR_NVML_TRY(expression)                                                   \
  if (const nvmlReturn_t torpor_result = (expression); torpor_result != NVML_SUCCESS) \
  return torpor_result
