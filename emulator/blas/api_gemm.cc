// Matrix products.
#include "emulator/blas/api.h"
#include "emulator/blas/gemm.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

cublasStatus_t RunGemm(cublasHandle_t handle, const GemmProblem& problem) {
  return WithHandle(handle, [&](cublasContext& context) { return Gemm(context, problem); });
}

template <typename T>
struct Types;
template <>
struct Types<float> {
  static constexpr cudaDataType kData = CUDA_R_32F;
  static constexpr cublasComputeType_t kCompute = CUBLAS_COMPUTE_32F;
};
template <>
struct Types<double> {
  static constexpr cudaDataType kData = CUDA_R_64F;
  static constexpr cublasComputeType_t kCompute = CUBLAS_COMPUTE_64F;
};

// A product whose matrices and scalars are all of type T.
template <typename T>
GemmProblem Plain(cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t m, std::int64_t n,
                  std::int64_t k, const T* alpha, const T* a, std::int64_t lda, const T* b,
                  std::int64_t ldb, const T* beta, T* c, std::int64_t ldc) {
  constexpr cudaDataType kData = Types<T>::kData;
  return {.op_a = op_a,
          .op_b = op_b,
          .m = m,
          .n = n,
          .k = k,
          .alpha = alpha,
          .a = a,
          .a_type = kData,
          .lda = lda,
          .b = b,
          .b_type = kData,
          .ldb = ldb,
          .beta = beta,
          .c = c,
          .c_type = kData,
          .ldc = ldc,
          .compute = Types<T>::kCompute};
}

GemmProblem Strided(GemmProblem problem, std::int64_t a_stride, std::int64_t b_stride,
                    std::int64_t c_stride, std::int64_t count) {
  problem.a_stride = a_stride;
  problem.b_stride = b_stride;
  problem.c_stride = c_stride;
  problem.count = count;
  return problem;
}

template <typename T>
cublasStatus_t RunBatched(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                          std::int64_t m, std::int64_t n, std::int64_t k, const T* alpha,
                          const T* const a[], std::int64_t lda, const T* const b[],
                          std::int64_t ldb, const T* beta, T* const c[], std::int64_t ldc,
                          std::int64_t count) {
  return WithHandle(handle, [&](cublasContext& context) {
    GemmProblem problem =
        Plain<T>(op_a, op_b, m, n, k, alpha, nullptr, lda, nullptr, ldb, beta, nullptr, ldc);
    problem.count = count;
    return GemmBatched(context, problem, reinterpret_cast<const void* const*>(a),
                       reinterpret_cast<const void* const*>(b), reinterpret_cast<void* const*>(c));
  });
}

GemmProblem Mixed(cublasOperation_t op_a, cublasOperation_t op_b, std::int64_t m, std::int64_t n,
                  std::int64_t k, const void* alpha, const void* a, cudaDataType a_type,
                  std::int64_t lda, const void* b, cudaDataType b_type, std::int64_t ldb,
                  const void* beta, void* c, cudaDataType c_type, std::int64_t ldc,
                  cublasComputeType_t compute) {
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

}  // namespace

extern "C" {

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                           int m, int n, int k, const float* alpha, const float* a, int lda,
                           const float* b, int ldb, const float* beta, float* c, int ldc) {
  return RunGemm(handle, Plain(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc));
}
cublasStatus_t cublasSgemm_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                              int64_t m, int64_t n, int64_t k, const float* alpha, const float* a,
                              int64_t lda, const float* b, int64_t ldb, const float* beta, float* c,
                              int64_t ldc) {
  return RunGemm(handle, Plain(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc));
}
cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                           int m, int n, int k, const double* alpha, const double* a, int lda,
                           const double* b, int ldb, const double* beta, double* c, int ldc) {
  return RunGemm(handle, Plain(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc));
}
cublasStatus_t cublasDgemm_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                              int64_t m, int64_t n, int64_t k, const double* alpha, const double* a,
                              int64_t lda, const double* b, int64_t ldb, const double* beta,
                              double* c, int64_t ldc) {
  return RunGemm(handle, Plain(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc));
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t op_a,
                                         cublasOperation_t op_b, int m, int n, int k,
                                         const float* alpha, const float* a, int lda,
                                         long long a_stride, const float* b, int ldb,
                                         long long b_stride, const float* beta, float* c, int ldc,
                                         long long c_stride, int count) {
  return RunGemm(handle, Strided(Plain(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc),
                                 a_stride, b_stride, c_stride, count));
}
cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t handle, cublasOperation_t op_a,
                                         cublasOperation_t op_b, int m, int n, int k,
                                         const double* alpha, const double* a, int lda,
                                         long long a_stride, const double* b, int ldb,
                                         long long b_stride, const double* beta, double* c, int ldc,
                                         long long c_stride, int count) {
  return RunGemm(handle, Strided(Plain(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc),
                                 a_stride, b_stride, c_stride, count));
}

cublasStatus_t cublasSgemmBatched(cublasHandle_t handle, cublasOperation_t op_a,
                                  cublasOperation_t op_b, int m, int n, int k, const float* alpha,
                                  const float* const a[], int lda, const float* const b[], int ldb,
                                  const float* beta, float* const c[], int ldc, int count) {
  return RunBatched(handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, count);
}
cublasStatus_t cublasDgemmBatched(cublasHandle_t handle, cublasOperation_t op_a,
                                  cublasOperation_t op_b, int m, int n, int k, const double* alpha,
                                  const double* const a[], int lda, const double* const b[],
                                  int ldb, const double* beta, double* const c[], int ldc,
                                  int count) {
  return RunBatched(handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, count);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                            int m, int n, int k, const void* alpha, const void* a,
                            cudaDataType a_type, int lda, const void* b, cudaDataType b_type,
                            int ldb, const void* beta, void* c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t) {
  return RunGemm(handle, Mixed(op_a, op_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c,
                               c_type, ldc, compute));
}
cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t op_a,
                               cublasOperation_t op_b, int64_t m, int64_t n, int64_t k,
                               const void* alpha, const void* a, cudaDataType a_type, int64_t lda,
                               const void* b, cudaDataType b_type, int64_t ldb, const void* beta,
                               void* c, cudaDataType c_type, int64_t ldc,
                               cublasComputeType_t compute, cublasGemmAlgo_t) {
  return RunGemm(handle, Mixed(op_a, op_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c,
                               c_type, ldc, compute));
}
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a,
                                          cublasOperation_t op_b, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType a_type,
                                          int lda, long long a_stride, const void* b,
                                          cudaDataType b_type, int ldb, long long b_stride,
                                          const void* beta, void* c, cudaDataType c_type, int ldc,
                                          long long c_stride, int count,
                                          cublasComputeType_t compute, cublasGemmAlgo_t) {
  return RunGemm(handle, Strided(Mixed(op_a, op_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb,
                                       beta, c, c_type, ldc, compute),
                                 a_stride, b_stride, c_stride, count));
}

}  // extern "C"
