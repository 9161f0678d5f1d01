#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace torpor::shim {

struct LaunchShape {
  dim3 grid;
  dim3 block;
  unsigned shared_bytes = 0;
  CUstream stream = nullptr;
  bool is_cooperative = false;
};

// `parameters` points to each argument; if null, `extra` names a buffer with the packed arguments.
CUresult Launch(CUfunction function, const LaunchShape& shape, void** parameters, void** extra);

// Stream 0 of the configuration stands for `default_stream`.
CUresult LaunchExtended(const CUlaunchConfig* config, CUfunction function, void** parameters,
                        void** extra, cudaStream_t default_stream);

// `callback` receives the stream's state as a CUresult.
CUresult AddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned flags);

}  // namespace torpor::shim
