#pragma once

#include <cuda.h>

#include <cstdio>
#include <cstdlib>

namespace torpor::bench {

// Ends a process of a benchmark that cannot go on: what it would measure is of no use.
inline void Check(bool is_right, const char* what) {
  if (is_right) return;
  std::fprintf(stderr, "%s failed\n", what);
  std::abort();
}

inline void Check(CUresult result, const char* what) { Check(result == CUDA_SUCCESS, what); }

}  // namespace torpor::bench
