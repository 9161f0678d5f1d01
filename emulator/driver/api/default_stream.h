#pragma once

#include <cuda.h>

// Sources that include this header are compiled twice. With CUDA_API_PER_THREAD_DEFAULT_STREAM
// defined, cuda.h gives each function its `_ptsz` or `_ptds` name, and a null stream means the
// per-thread default stream.
namespace {

inline CUstream OrDefault(CUstream stream) {
  if (stream != nullptr) return stream;
#ifdef __CUDA_API_PER_THREAD_DEFAULT_STREAM
  return CU_STREAM_PER_THREAD;
#else
  return CU_STREAM_LEGACY;
#endif
}

}  // namespace
