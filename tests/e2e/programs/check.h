// What the programs of this folder check themselves with. A failure says where and ends the
// program with status 1, or lets it go on and end so if CHECK_GOES_ON is set: to learn all of what
// a driver does otherwise. main ends with `return Pass();`.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

inline bool check_has_failed = false;

inline void NoteFailure() {
  std::fflush(stdout);
  if (std::getenv("CHECK_GOES_ON") == nullptr) std::_Exit(1);
  check_has_failed = true;
}

#define REQUIRE(condition)                                             \
  do {                                                                 \
    if (!(condition)) {                                                \
      std::printf("FAIL %s:%d: %s\n", __FILE__, __LINE__, #condition); \
      NoteFailure();                                                   \
    }                                                                  \
  } while (false)

#define EXPECT_CUDA(call, expected)                                              \
  do {                                                                           \
    const cudaError_t error_ = (call);                                           \
    if (error_ != (expected)) {                                                  \
      std::printf("FAIL %s:%d: %s gave %s, not %s\n", __FILE__, __LINE__, #call, \
                  cudaGetErrorName(error_), cudaGetErrorName(expected));         \
      NoteFailure();                                                             \
    }                                                                            \
  } while (false)

#define CUDA(call) EXPECT_CUDA(call, cudaSuccess)

inline int Pass() {
  std::printf(check_has_failed ? "FAIL\n" : "PASS\n");
  return check_has_failed ? 1 : 0;
}
