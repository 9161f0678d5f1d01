#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/cuda_api/cublas_functions.h"
#include "server/executor/library/library_handle_pool.h"

namespace torpor::executor {

// Opens libcublas.so.13 in `directory` (empty: the system's search path) for the rest of the
// process's life. Functions missing in the library stay null. NotFound if the library is missing.
absl::StatusOr<cuda_api::CublasFunctions> LoadCublas(const std::string& directory);

// Idle cuBLAS handles, shared by the sessions of an executor.
using CublasPool = LibraryHandlePool<cuda_api::CublasFunctions, cublasHandle_t,
                                     &cuda_api::CublasFunctions::cublasCreate_v2,
                                     &cuda_api::CublasFunctions::cublasDestroy_v2>;

}  // namespace torpor::executor
