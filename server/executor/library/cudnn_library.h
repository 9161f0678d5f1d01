#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/cuda_api/cudnn_functions.h"
#include "server/executor/library/library_handle_pool.h"

namespace torpor::executor {

// Opens libcudnn.so.9 in `directory` (empty: where the system's loader finds it) for the rest
// of the process's life. Functions that the library lacks stay null. NotFound if there is none.
absl::StatusOr<cuda_api::CudnnFunctions> LoadCudnn(const std::string& directory);

using CudnnPool = LibraryHandlePool<cuda_api::CudnnFunctions, cudnnHandle_t,
                                    &cuda_api::CudnnFunctions::cudnnCreate,
                                    &cuda_api::CudnnFunctions::cudnnDestroy>;

}  // namespace torpor::executor
