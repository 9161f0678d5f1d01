// General matrix products.
#include "emulator/blas/api.h"
#include "emulator/blas/arguments.h"
#include "emulator/blas/element_type.h"
#include "emulator/blas/gemm.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

cublasStatus_t RunGemm(cublasHandle_t handle, const GemmProblem& problem) {
  return WithHandle(handle, [&](cublasContext& context) { return Gemm(context, problem); });
}

// A product whose matrices may have different types.
GemmProblem Mixed(cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                  const void* alpha, const void* a, cudaDataType a_type, int lda, const void* b,
                  cudaDataType b_type, int ldb, const void* beta, void* c, cudaDataType c_type,
                  int ldc, cublasComputeType_t compute) {
  return {.op_a = op_a,
          .op_b = op_b,
          .m = m,
          .n = n,
          .k = k,
          .alpha = alpha,
          .a = a,
          .a_type = a_type,
          .lda = lda,
          .b = b,
          .b_type = b_type,
          .ldb = ldb,
          .beta = beta,
          .c = c,
          .c_type = c_type,
          .ldc = ldc,
          .compute = compute};
}

// A product of matrices and scalars of one type, T.
template <typename T>
GemmProblem Plain(cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                  const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta, T* c,
                  int ldc) {
  constexpr cudaDataType kType = kDataTypeOf<T>;
  constexpr cublasComputeType_t kCompute = std::is_same_v<Real<T>, double> ? CUBLAS_COMPUTE_64F
                                           : std::is_same_v<T, __half>     ? CUBLAS_COMPUTE_16F
                                                                           : CUBLAS_COMPUTE_32F;
  return Mixed(op_a, op_b, m, n, k, alpha, a, kType, lda, b, kType, ldb, beta, c, kType, ldc,
               kCompute);
}

// Makes a product strided: `count` products, with strides in elements.
GemmProblem Strided(GemmProblem problem, std::int64_t a_stride, std::int64_t b_stride,
                    std::int64_t c_stride, std::int64_t count) {
  problem.a_stride = a_stride;
  problem.b_stride = b_stride;
  problem.c_stride = c_stride;
  problem.count = count;
  return problem;
}

// Runs `count` products whose matrices' addresses lie in the arrays `a`, `b` and `c`.
cublasStatus_t RunBatched(cublasHandle_t handle, GemmProblem problem, const void* a, const void* b,
                          const void* c, int count) {
  problem.count = count;
  return WithHandle(handle, [&](cublasContext& context) {
    return GemmBatched(context, problem, static_cast<const void* const*>(a),
                       static_cast<const void* const*>(b), static_cast<void* const*>(c));
  });
}

template <typename T>
cublasStatus_t PlainGemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                         int m, int n, int k, const T* alpha, const T* a, int lda, const T* b,
                         int ldb, const T* beta, T* c, int ldc) {
  return RunGemm(handle, Plain(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc));
}

template <typename T>
cublasStatus_t StridedGemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                           int m, int n, int k, const T* alpha, const T* a, int lda,
                           long long a_stride, const T* b, int ldb, long long b_stride,
                           const T* beta, T* c, int ldc, long long c_stride, int count) {
  return RunGemm(handle, Strided(Plain(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc),
                                 a_stride, b_stride, c_stride, count));
}

template <typename T>
cublasStatus_t BatchedGemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                           int m, int n, int k, const T* alpha, const T* const* a, int lda,
                           const T* const* b, int ldb, const T* beta, T* const* c, int ldc,
                           int count) {
  const GemmProblem problem =
      Plain<T>(op_a, op_b, m, n, k, alpha, nullptr, lda, nullptr, ldb, beta, nullptr, ldc);
  return RunBatched(handle, problem, a, b, c, count);
}

cublasStatus_t MixedGemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                         int m, int n, int k, const void* alpha, const void* a, cudaDataType a_type,
                         int lda, const void* b, cudaDataType b_type, int ldb, const void* beta,
                         void* c, cudaDataType c_type, int ldc, cublasComputeType_t compute,
                         cublasGemmAlgo_t) {
  return RunGemm(handle, Mixed(op_a, op_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c,
                               c_type, ldc, compute));
}

cublasStatus_t StridedMixedGemm(cublasHandle_t handle, cublasOperation_t op_a,
                                cublasOperation_t op_b, int m, int n, int k, const void* alpha,
                                const void* a, cudaDataType a_type, int lda, long long a_stride,
                                const void* b, cudaDataType b_type, int ldb, long long b_stride,
                                const void* beta, void* c, cudaDataType c_type, int ldc,
                                long long c_stride, int count, cublasComputeType_t compute,
                                cublasGemmAlgo_t) {
  return RunGemm(handle, Strided(Mixed(op_a, op_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb,
                                       beta, c, c_type, ldc, compute),
                                 a_stride, b_stride, c_stride, count));
}

cublasStatus_t BatchedMixedGemm(cublasHandle_t handle, cublasOperation_t op_a,
                                cublasOperation_t op_b, int m, int n, int k, const void* alpha,
                                const void* const* a, cudaDataType a_type, int lda,
                                const void* const* b, cudaDataType b_type, int ldb,
                                const void* beta, void* const* c, cudaDataType c_type, int ldc,
                                int count, cublasComputeType_t compute, cublasGemmAlgo_t) {
  const GemmProblem problem = Mixed(op_a, op_b, m, n, k, alpha, nullptr, a_type, lda, nullptr,
                                    b_type, ldb, beta, nullptr, c_type, ldc, compute);
  return RunBatched(handle, problem, a, b, c, count);
}

// Scalars and sums are in single precision.
template <typename S>
cublasStatus_t SingleMixedGemm(cublasHandle_t handle, cublasOperation_t op_a,
                               cublasOperation_t op_b, int m, int n, int k, const S* alpha,
                               const void* a, cudaDataType a_type, int lda, const void* b,
                               cudaDataType b_type, int ldb, const S* beta, void* c,
                               cudaDataType c_type, int ldc) {
  return RunGemm(handle, Mixed(op_a, op_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c,
                               c_type, ldc, CUBLAS_COMPUTE_32F));
}

}  // namespace

extern "C" {

#include "emulator/blas/gemm_entries.inc"

}  // extern "C"
