#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace torpor::shim {

// The grid and the blocks of a launch, and the stream of the launch.
struct LaunchDimensions {
  dim3 grid;
  dim3 block;
  unsigned shared_bytes = 0;
  CUstream stream = nullptr;
  bool is_cooperative = false;
};

// Launches a kernel on the shape's stream. `parameters` points to each argument; if null, `extra`
// names a buffer with the packed arguments. Both together are CUDA_ERROR_INVALID_VALUE.
CUresult Launch(CUfunction function, const LaunchDimensions& shape, void** parameters,
                void** extra);

// The runtime's form of the configuration, with the same array of attributes.
cudaLaunchConfig_t ToRuntime(const CUlaunchConfig& config);

// As Launch, with attributes such as clusters. Stream 0 of the configuration stands for
// `default_stream`.
CUresult LaunchExtended(const CUlaunchConfig* config, CUfunction function, void** parameters,
                        void** extra, cudaStream_t default_stream);

// Calls `callback` once, after the stream's earlier work, with the stream's state as a CUresult.
CUresult AddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned flags);

}  // namespace torpor::shim
