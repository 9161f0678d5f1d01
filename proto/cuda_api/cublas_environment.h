#pragma once

#include <cublas_api.h>

#include <cstdint>

#include "proto/cuda_api/cublas_functions.h"

namespace torpor::cuda_api {

enum class Access { kRead, kReadWrite, kWrite };

// What the generated cuBLAS calls ask of the executor. Everything they pass on was checked for
// sense (blas_extents.h), not for ownership: that is asked here.
class CublasEnvironment {
 public:
  virtual ~CublasEnvironment() = default;

  // The real library's entry points.
  virtual const CublasFunctions& functions() const = 0;

  // Where the GPU finds the client's [address, address + bytes), bytes > 0; null unless all of it
  // is the session's device memory.
  virtual void* Resolve(std::uint64_t address, std::uint64_t bytes, Access access) = 0;

  // The real handle, in this pointer mode, on its session's stream and ordered after what that
  // stream must wait for; null if the session has no such handle or its stream is gone.
  virtual cublasHandle_t BeginCall(std::uint64_t handle, cublasPointerMode_t mode) = 0;
};

}  // namespace torpor::cuda_api
