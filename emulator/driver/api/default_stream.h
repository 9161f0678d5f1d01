#pragma once

#include <cuda.h>

// Sources that include this are compiled twice: cuda.h gives each function its `_ptsz` or `_ptds`
// name when CUDA_API_PER_THREAD_DEFAULT_STREAM is defined, and null means another stream.
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
