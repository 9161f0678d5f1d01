#pragma once

#include <cublas_api.h>

#include <cstdint>

#include "proto/cuda_api/cublas_functions.h"
#include "proto/cuda_api/device_memory.h"

namespace torpor::cuda_api {

// What the generated cuBLAS calls ask of the executor. Everything they pass on was checked for
// sense (blas_extents.h), not for ownership: that is asked here.
class CublasEnvironment : public DeviceMemory {
 public:
  // The real library's entry points.
  virtual const CublasFunctions& functions() const = 0;

  // The real handle, in this pointer mode, on its session's stream and ordered after what that
  // stream must wait for; null if the session has no such handle or its stream is gone.
  virtual cublasHandle_t BeginCall(std::uint64_t handle, cublasPointerMode_t mode) = 0;
};

}  // namespace torpor::cuda_api
