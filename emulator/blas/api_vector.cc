// Vectors, and matrices times vectors.
#include <cblas.h>

#include <algorithm>

#include "emulator/blas/api.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

// OpenBLAS by element type.
template <typename T>
struct Blas;
template <>
struct Blas<float> {
  static constexpr auto axpy = cblas_saxpy;
  static constexpr auto scal = cblas_sscal;
  static constexpr auto copy = cblas_scopy;
  static constexpr auto swap = cblas_sswap;
  static constexpr auto dot = cblas_sdot;
  static constexpr auto nrm2 = cblas_snrm2;
  static constexpr auto asum = cblas_sasum;
  static constexpr auto iamax = cblas_isamax;
  static constexpr auto gemv = cblas_sgemv;
  static constexpr auto ger = cblas_sger;
};
template <>
struct Blas<double> {
  static constexpr auto axpy = cblas_daxpy;
  static constexpr auto scal = cblas_dscal;
  static constexpr auto copy = cblas_dcopy;
  static constexpr auto swap = cblas_dswap;
  static constexpr auto dot = cblas_ddot;
  static constexpr auto nrm2 = cblas_dnrm2;
  static constexpr auto asum = cblas_dasum;
  static constexpr auto iamax = cblas_idamax;
  static constexpr auto gemv = cblas_dgemv;
  static constexpr auto ger = cblas_dger;
};

template <typename T>
Extent Read(const T* x, int n, int incx) {
  return VectorExtent(x, n, incx, sizeof(T), false);
}
template <typename T>
Extent Written(T* x, int n, int incx) {
  return VectorExtent(x, n, incx, sizeof(T), true);
}

template <typename T>
cublasStatus_t Axpy(cublasHandle_t handle, int n, const T* alpha, const T* x, int incx, T* y,
                    int incy) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    if (n <= 0) return CUBLAS_STATUS_SUCCESS;
    const Scalar<T> factor(context, alpha);
    return Enqueue(context, {factor.extent(), Read(x, n, incx), Written(y, n, incy)},
                   [=] { Blas<T>::axpy(n, factor.value(), x, incx, y, incy); });
  });
}

template <typename T>
cublasStatus_t Scal(cublasHandle_t handle, int n, const T* alpha, T* x, int incx) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    if (n <= 0 || incx <= 0) return CUBLAS_STATUS_SUCCESS;
    const Scalar<T> factor(context, alpha);
    return Enqueue(context, {factor.extent(), Written(x, n, incx)},
                   [=] { Blas<T>::scal(n, factor.value(), x, incx); });
  });
}

template <typename T>
cublasStatus_t Copy(cublasHandle_t handle, int n, const T* x, int incx, T* y, int incy) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (n <= 0) return CUBLAS_STATUS_SUCCESS;
    return Enqueue(context, {Read(x, n, incx), Written(y, n, incy)},
                   [=] { Blas<T>::copy(n, x, incx, y, incy); });
  });
}

template <typename T>
cublasStatus_t Swap(cublasHandle_t handle, int n, T* x, int incx, T* y, int incy) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (n <= 0) return CUBLAS_STATUS_SUCCESS;
    return Enqueue(context, {Written(x, n, incx), Written(y, n, incy)},
                   [=] { Blas<T>::swap(n, x, incx, y, incy); });
  });
}

// A function with one result, which goes to device memory in stream order, or to the host, and
// then the call waits for it.
template <typename R, typename Compute>
cublasStatus_t Reduce(cublasHandle_t handle, std::initializer_list<Extent> inputs, R* result,
                      Compute compute) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    for (const Extent& input : inputs) {
      if (!Accessible(context, input)) return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    const bool to_device = context.pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
    const Extent output{result, to_device ? sizeof(R) : 0, true};
    const auto queued = Enqueue(context, {output}, [=] { *result = compute(); });
    if (queued != CUBLAS_STATUS_SUCCESS || to_device) return queued;
    return context.driver->stream_synchronize(context.stream) == CUDA_SUCCESS
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_EXECUTION_FAILED;
  });
}

template <typename T>
cublasStatus_t Dot(cublasHandle_t handle, int n, const T* x, int incx, const T* y, int incy,
                   T* result) {
  return Reduce(handle, {Read(x, n, incx), Read(y, n, incy)}, result,
                [=] { return Blas<T>::dot(n, x, incx, y, incy); });
}

template <typename T>
cublasStatus_t Nrm2(cublasHandle_t handle, int n, const T* x, int incx, T* result) {
  return Reduce(handle, {Read(x, n, incx)}, result, [=] { return Blas<T>::nrm2(n, x, incx); });
}

template <typename T>
cublasStatus_t Asum(cublasHandle_t handle, int n, const T* x, int incx, T* result) {
  return Reduce(handle, {Read(x, n, incx)}, result, [=] { return Blas<T>::asum(n, x, incx); });
}

// cuBLAS counts from one, and says zero for an empty vector.
template <typename T>
cublasStatus_t Iamax(cublasHandle_t handle, int n, const T* x, int incx, int* result) {
  return Reduce(handle, {Read(x, n, incx)}, result, [=] {
    return n <= 0 || incx <= 0 ? 0 : static_cast<int>(Blas<T>::iamax(n, x, incx)) + 1;
  });
}

template <typename T>
cublasStatus_t Gemv(cublasHandle_t handle, cublasOperation_t op, int m, int n, const T* alpha,
                    const T* a, int lda, const T* x, int incx, const T* beta, T* y, int incy) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (m < 0 || n < 0 || lda < std::max(m, 1) || incx == 0 || incy == 0 || alpha == nullptr ||
        beta == nullptr || op < CUBLAS_OP_N || op > CUBLAS_OP_C) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    const bool plain = op == CUBLAS_OP_N;
    const Scalar<T> factor(context, alpha);
    const Scalar<T> addend(context, beta);
    return Enqueue(context,
                   {factor.extent(), addend.extent(), MatrixExtent(a, m, n, lda, sizeof(T), false),
                    Read(x, plain ? n : m, incx), Written(y, plain ? m : n, incy)},
                   [=] {
                     Blas<T>::gemv(CblasColMajor, plain ? CblasNoTrans : CblasTrans, m, n,
                                   factor.value(), a, lda, x, incx, addend.value(), y, incy);
                   });
  });
}

template <typename T>
cublasStatus_t Ger(cublasHandle_t handle, int m, int n, const T* alpha, const T* x, int incx,
                   const T* y, int incy, T* a, int lda) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (m < 0 || n < 0 || lda < std::max(m, 1) || incx == 0 || incy == 0 || alpha == nullptr) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    const Scalar<T> factor(context, alpha);
    return Enqueue(
        context,
        {factor.extent(), Read(x, m, incx), Read(y, n, incy),
         MatrixExtent(a, m, n, lda, sizeof(T), true)},
        [=] { Blas<T>::ger(CblasColMajor, m, n, factor.value(), x, incx, y, incy, a, lda); });
  });
}

}  // namespace

extern "C" {

cublasStatus_t cublasSaxpy(cublasHandle_t handle, int n, const float* alpha, const float* x,
                           int incx, float* y, int incy) {
  return Axpy(handle, n, alpha, x, incx, y, incy);
}
cublasStatus_t cublasDaxpy(cublasHandle_t handle, int n, const double* alpha, const double* x,
                           int incx, double* y, int incy) {
  return Axpy(handle, n, alpha, x, incx, y, incy);
}
cublasStatus_t cublasSscal(cublasHandle_t handle, int n, const float* alpha, float* x, int incx) {
  return Scal(handle, n, alpha, x, incx);
}
cublasStatus_t cublasDscal(cublasHandle_t handle, int n, const double* alpha, double* x, int incx) {
  return Scal(handle, n, alpha, x, incx);
}
cublasStatus_t cublasScopy(cublasHandle_t handle, int n, const float* x, int incx, float* y,
                           int incy) {
  return Copy(handle, n, x, incx, y, incy);
}
cublasStatus_t cublasDcopy(cublasHandle_t handle, int n, const double* x, int incx, double* y,
                           int incy) {
  return Copy(handle, n, x, incx, y, incy);
}
cublasStatus_t cublasSswap(cublasHandle_t handle, int n, float* x, int incx, float* y, int incy) {
  return Swap(handle, n, x, incx, y, incy);
}
cublasStatus_t cublasDswap(cublasHandle_t handle, int n, double* x, int incx, double* y, int incy) {
  return Swap(handle, n, x, incx, y, incy);
}
cublasStatus_t cublasSdot(cublasHandle_t handle, int n, const float* x, int incx, const float* y,
                          int incy, float* result) {
  return Dot(handle, n, x, incx, y, incy, result);
}
cublasStatus_t cublasDdot(cublasHandle_t handle, int n, const double* x, int incx, const double* y,
                          int incy, double* result) {
  return Dot(handle, n, x, incx, y, incy, result);
}
cublasStatus_t cublasSnrm2(cublasHandle_t handle, int n, const float* x, int incx, float* result) {
  return Nrm2(handle, n, x, incx, result);
}
cublasStatus_t cublasDnrm2(cublasHandle_t handle, int n, const double* x, int incx,
                           double* result) {
  return Nrm2(handle, n, x, incx, result);
}
cublasStatus_t cublasSasum(cublasHandle_t handle, int n, const float* x, int incx, float* result) {
  return Asum(handle, n, x, incx, result);
}
cublasStatus_t cublasDasum(cublasHandle_t handle, int n, const double* x, int incx,
                           double* result) {
  return Asum(handle, n, x, incx, result);
}
cublasStatus_t cublasIsamax(cublasHandle_t handle, int n, const float* x, int incx, int* result) {
  return Iamax(handle, n, x, incx, result);
}
cublasStatus_t cublasIdamax(cublasHandle_t handle, int n, const double* x, int incx, int* result) {
  return Iamax(handle, n, x, incx, result);
}
cublasStatus_t cublasSgemv(cublasHandle_t handle, cublasOperation_t op, int m, int n,
                           const float* alpha, const float* a, int lda, const float* x, int incx,
                           const float* beta, float* y, int incy) {
  return Gemv(handle, op, m, n, alpha, a, lda, x, incx, beta, y, incy);
}
cublasStatus_t cublasDgemv(cublasHandle_t handle, cublasOperation_t op, int m, int n,
                           const double* alpha, const double* a, int lda, const double* x, int incx,
                           const double* beta, double* y, int incy) {
  return Gemv(handle, op, m, n, alpha, a, lda, x, incx, beta, y, incy);
}
cublasStatus_t cublasSger(cublasHandle_t handle, int m, int n, const float* alpha, const float* x,
                          int incx, const float* y, int incy, float* a, int lda) {
  return Ger(handle, m, n, alpha, x, incx, y, incy, a, lda);
}
cublasStatus_t cublasDger(cublasHandle_t handle, int m, int n, const double* alpha, const double* x,
                          int incx, const double* y, int incy, double* a, int lda) {
  return Ger(handle, m, n, alpha, x, incx, y, incy, a, lda);
}

}  // extern "C"
