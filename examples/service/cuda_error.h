#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace torpor::examples {

// Throw with the error's name, so that the server answers 500 and goes on.
inline void Check(cudaError_t error) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error));
}

inline void Check(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(cublasGetStatusName(status));
}

}  // namespace torpor::examples
