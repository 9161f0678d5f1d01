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

// The arguments are in `parameters`, a pointer each, or packed in the buffer that `extra` names.
CUresult Launch(CUfunction function, const LaunchShape& shape, void** parameters, void** extra);

// Stream 0 of the configuration stands for `default_stream`.
CUresult LaunchExtended(const CUlaunchConfig* config, CUfunction function, void** parameters,
                        void** extra, cudaStream_t default_stream);

// `callback` gets the stream's state in the driver's words.
CUresult AddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned flags);

}  // namespace torpor::shim
