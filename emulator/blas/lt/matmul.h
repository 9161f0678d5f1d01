#pragma once

#include <cublasLt.h>
#include <cuda.h>

#include <complex>

#include "emulator/library/driver_calls.h"
#include "nvidia/cublaslt/descriptors.h"

namespace torpor::emulator {

// D = epilogue(alpha op(A) op(B) + beta C), for each batch of the layouts.
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

// Checks everything but the addresses. Returns CUBLAS_STATUS_INVALID_VALUE for contradictions,
// CUBLAS_STATUS_NOT_SUPPORTED for features that the emulator lacks.
cublasStatus_t ValidateLt(const LtProblem& problem);

// Checks the problem and its addresses, and queues the product on `stream`.
cublasStatus_t QueueLt(const DriverCalls& driver, CUstream stream, const LtProblem& problem);

}  // namespace torpor::emulator
