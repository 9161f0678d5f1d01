#pragma once

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/stream/capture.h"
#include "client_shim/cudart/stream/host_functions.h"

namespace torpor::shim {

// Frees by `free` when nothing uses the memory any more: CUDA's cudaFree synchronises for this.
// An error of earlier work, or a lost GPU, is told and keeps nothing alive.
template <typename Free>
cudaError_t FreeUnused(const Free& free) {
  TORPOR_TRY(RefuseUnsafe());
  TORPOR_TRY(AwaitAllHostFunctions());
  // Another device may use it as well.
  const cudaError_t earlier = ForEachDevice(
      [] { return Core().IsDrained() ? cudaSuccess : Ask(wire::DeviceSynchronize{}); });
  const cudaError_t freed = free();
  return earlier != cudaSuccess ? earlier : freed;
}

}  // namespace torpor::shim
