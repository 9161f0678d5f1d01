#pragma once

#include <cublas_api.h>

#include <cstdint>

#include "proto/cuda_api/call_memory.h"
#include "proto/cuda_api/cublas_functions.h"

namespace torpor::cuda_api {

// The executor's services for generated cuBLAS calls. The calls pass arguments that are checked for
// sense (blas_extents.h); implementations check ownership.
class CublasEnvironment : public CallMemory {
 public:
  // The real library's entry points.
  virtual const CublasFunctions& functions() const = 0;

  // Returns the real handle in this pointer mode, on the handle's stream and ordered after the work
  // that the stream waits for; null if the session has no such handle or the stream is gone.
  virtual cublasHandle_t BeginCall(std::uint64_t handle, cublasPointerMode_t mode) = 0;
};

}  // namespace torpor::cuda_api
