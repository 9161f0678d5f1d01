// check.h for calls of the driver API.
#pragma once

#include <cuda.h>

#include "tests/e2e/programs/check.h"

#define EXPECT_CU(call, expected)                                                          \
  do {                                                                                     \
    check_line = __LINE__;                                                                 \
    const CUresult result_ = (call);                                                       \
    if (result_ != (expected)) {                                                           \
      std::printf("FAIL %s:%d: %s gave %d, not %d\n", FileName(__FILE__), __LINE__, #call, \
                  result_, expected);                                                      \
      NoteFailure();                                                                       \
    }                                                                                      \
  } while (false)

#define CU(call) EXPECT_CU(call, CUDA_SUCCESS)
