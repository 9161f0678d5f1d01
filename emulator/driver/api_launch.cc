// Kernel launches; compiled twice, see default_stream.h.
#include "emulator/driver/default_stream.h"
#include "emulator/driver/launch.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

extern "C" {

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                void** values, void** extra) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    return Launch(target, function,
                  {.grid = {grid_x, grid_y, grid_z},
                   .block = {block_x, block_y, block_z},
                   .dynamic_shared_bytes = shared_bytes},
                  values, extra);
  });
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** values,
                                  void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LaunchRequest request{.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                        .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                        .dynamic_shared_bytes = config->sharedMemBytes};
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config->attrs[i];
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        request.cooperative = attribute.value.cooperative != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
        const auto& cluster = attribute.value.clusterDim;
        if (cluster.x * cluster.y * cluster.z > 1) return CUDA_ERROR_NOT_SUPPORTED;
        break;
      }
      default:
        break;  // hints
    }
  }
  return OnStream(OrDefault(config->hStream), [&](const StreamTarget& target) {
    return Launch(target, function, request, values, extra);
  });
}

CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x,
                                           unsigned int grid_y, unsigned int grid_z,
                                           unsigned int block_x, unsigned int block_y,
                                           unsigned int block_z, unsigned int shared_bytes,
                                           CUstream stream, void** values) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    return Launch(target, function,
                  {.grid = {grid_x, grid_y, grid_z},
                   .block = {block_x, block_y, block_z},
                   .dynamic_shared_bytes = shared_bytes,
                   .cooperative = true},
                  values, nullptr);
  });
}

}  // extern "C"
