#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/cuda_api/cudnn_functions.h"
#include "server/executor/library/cudnn_plans.h"
#include "server/executor/library/library_handle_pool.h"

namespace torpor::executor {

// Opens libcudnn.so.9 in `directory` (empty: the system's search path) for the rest of the
// process's life. Functions missing in the library stay null. NotFound if the library is missing.
absl::StatusOr<cuda_api::CudnnFunctions> LoadCudnn(const std::string& directory);

using CudnnHandlePool = LibraryHandlePool<cuda_api::CudnnFunctions, cudnnHandle_t,
                                          &cuda_api::CudnnFunctions::cudnnCreate,
                                          &cuda_api::CudnnFunctions::cudnnDestroy>;

// What all sessions share of cuDNN: idle handles and plans. Thread-safe.
class CudnnPool : public CudnnHandlePool {
 public:
  using CudnnHandlePool::CudnnHandlePool;

  CudnnPlans& plans() { return plans_; }

 private:
  CudnnPlans plans_{functions()};
};

}  // namespace torpor::executor
