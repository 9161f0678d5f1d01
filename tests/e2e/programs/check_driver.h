// check.h for calls of the driver API.
#pragma once

#include <cuda.h>

#include "tests/e2e/programs/check.h"

inline std::string NameOf(CUresult result) { return std::to_string(result); }

#define EXPECT_CU(call, expected) EXPECT_RESULT(CUresult, call, expected)
#define CU(call) EXPECT_CU(call, CUDA_SUCCESS)
