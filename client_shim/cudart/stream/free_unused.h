#pragma once

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/stream/capture.h"
#include "client_shim/cudart/stream/host_functions.h"

namespace torpor::shim {

// Waits for all devices, then frees memory by `free()`; cudaFree synchronises likewise. Frees even
// if earlier work failed or the GPU is lost, and returns the first error.
template <typename Free>
cudaError_t FreeUnused(const Free& free) {
  TORPOR_TRY(RefuseUnsafe());
  TORPOR_TRY(AwaitAllHostFunctions());
  // Other devices may use the memory as well.
  const cudaError_t earlier = ForEachDevice(
      [] { return Core().IsDrained() ? cudaSuccess : Ask(wire::DeviceSynchronize{}); });
  const cudaError_t freed = free();
  return earlier != cudaSuccess ? earlier : freed;
}

}  // namespace torpor::shim
