// A libcuda.so.1 that is the emulator's but for one call: marked launches succeed at once. With
// it the executor does all that it does for a launch, and the time of the kernel is left out.
#include <cuda.h>
#include <dlfcn.h>

#include "bench/e2e/kernels.h"

extern "C" __attribute__((visibility("default"))) CUresult cuLaunchKernel(
    CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
    unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters,
    void** extra) {
  if (grid_z == torpor::bench::kSkippedLayers) return CUDA_SUCCESS;
  // Loaded already, under its soname, because this library needs it.
  static const auto emulated = reinterpret_cast<decltype(&cuLaunchKernel)>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuLaunchKernel"));
  return emulated(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
                  parameters, extra);
}
