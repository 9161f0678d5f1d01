#pragma once

#include <cublasLt.h>
#include <cuda.h>

#include <complex>

#include "emulator/library/driver_calls.h"
#include "nvidia/cublaslt/descriptors.h"

namespace torpor::emulator {

// D = epilogue(alpha op(A) op(B) + beta C), `count` times.
struct LtProblem {
  LtMatmulDescriptor matmul;
  LtMatrixLayout a_layout;
  LtMatrixLayout b_layout;
  LtMatrixLayout c_layout;
  LtMatrixLayout d_layout;
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
  const void* alpha = nullptr;  // of the scale type, where the pointer mode says
  const void* beta = nullptr;
};

// Of everything but the addresses: CUBLAS_STATUS_INVALID_VALUE for what makes no sense,
// CUBLAS_STATUS_NOT_SUPPORTED for what the emulator lacks.
cublasStatus_t ValidateLt(const LtProblem& problem);

// Checks all and queues.
cublasStatus_t QueueLt(const DriverCalls& driver, CUstream stream, const LtProblem& problem);

}  // namespace torpor::emulator
