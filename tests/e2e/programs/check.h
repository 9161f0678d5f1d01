// What the programs of this folder check themselves with. A failure says where and ends the
// program with status 1; main ends with `return Pass();`.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#define REQUIRE(condition)                                             \
  do {                                                                 \
    if (!(condition)) {                                                \
      std::printf("FAIL %s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::fflush(stdout);                                             \
      std::_Exit(1);                                                   \
    }                                                                  \
  } while (false)

#define EXPECT_CUDA(call, expected)                                              \
  do {                                                                           \
    const cudaError_t error_ = (call);                                           \
    if (error_ != (expected)) {                                                  \
      std::printf("FAIL %s:%d: %s gave %s, not %s\n", __FILE__, __LINE__, #call, \
                  cudaGetErrorName(error_), cudaGetErrorName(expected));         \
      std::fflush(stdout);                                                       \
      std::_Exit(1);                                                             \
    }                                                                            \
  } while (false)

#define CUDA(call) EXPECT_CUDA(call, cudaSuccess)

inline int Pass() {
  std::printf("PASS\n");
  return 0;
}
