#pragma once

#include <cublas_v2.h>

#include <cstdint>

#include "emulator/blas/handle.h"

namespace torpor::emulator {

// C = alpha * op(A) * op(B) + beta * C, column-major, for `count` batches. Leading dimensions and
// strides, from one batch to the next, are in elements. alpha and beta have the scale type of
// `compute` and lie where the handle's pointer mode says.
struct GemmProblem {
  cublasOperation_t op_a = CUBLAS_OP_N;
  cublasOperation_t op_b = CUBLAS_OP_N;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const void* alpha = nullptr;
  const void* a = nullptr;
  cudaDataType a_type = CUDA_R_32F;
  std::int64_t lda = 0;
  std::int64_t a_stride = 0;
  const void* b = nullptr;
  cudaDataType b_type = CUDA_R_32F;
  std::int64_t ldb = 0;
  std::int64_t b_stride = 0;
  const void* beta = nullptr;
  void* c = nullptr;
  cudaDataType c_type = CUDA_R_32F;
  std::int64_t ldc = 0;
  std::int64_t c_stride = 0;
  std::int64_t count = 1;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};

// Checks and queues the product. Returns CUBLAS_STATUS_NOT_SUPPORTED for types that the emulator
// lacks.
cublasStatus_t Gemm(const cublasContext& handle, const GemmProblem& problem);

// As Gemm, for matrices whose addresses lie in three arrays of `count` pointers in device memory.
// Waits for the stream, to check the matrices before queueing.
cublasStatus_t GemmBatched(const cublasContext& handle, const GemmProblem& problem,
                           const void* const* a, const void* const* b, void* const* c);

}  // namespace torpor::emulator
