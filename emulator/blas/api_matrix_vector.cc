// Dense matrices and vectors.
#include "emulator/blas/api.h"
#include "emulator/blas/arguments.h"
#include "emulator/blas/openblas.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

// y = alpha op(A) x + beta y.
template <typename T>
cublasStatus_t Gemv(cublasHandle_t handle, cublasOperation_t op, int m, int n, const T* alpha,
                    const T* a, int lda, const T* x, int incx, const T* beta, T* y, int incy) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (!IsValid(op) || m < 0 || n < 0 || !IsLeading(lda, m) || incx == 0 || incy == 0 ||
        alpha == nullptr || beta == nullptr) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    const bool plain = op == CUBLAS_OP_N;
    const Scalar<T> factor(context, alpha);
    const Scalar<T> addend(context, beta);
    return Enqueue(context,
                   {factor.extent(), addend.extent(), ReadMatrix(a, m, n, lda),
                    ReadVector(x, plain ? n : m, incx), WrittenVector(y, plain ? m : n, incy)},
                   [=] {
                     OpenBlas<T>::gemv(CblasColMajor, ToCblas(op), m, n, Pass(factor.value()), a,
                                       lda, x, incx, Pass(addend.value()), y, incy);
                   });
  });
}

// A += alpha x yᵀ, or alpha x yᴴ.
template <typename T, typename Call>
cublasStatus_t RankOne(cublasHandle_t handle, int m, int n, const T* alpha, const T* x, int incx,
                       const T* y, int incy, T* a, int lda, Call call) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (m < 0 || n < 0 || !IsLeading(lda, m) || incx == 0 || incy == 0 || alpha == nullptr) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    const Scalar<T> factor(context, alpha);
    return Enqueue(
        context,
        {factor.extent(), ReadVector(x, m, incx), ReadVector(y, n, incy),
         WrittenMatrix(a, m, n, lda)},
        [=] { call(CblasColMajor, m, n, Pass(factor.value()), x, incx, y, incy, a, lda); });
  });
}

// A += alpha x y^T.
template <typename T>
cublasStatus_t Ger(cublasHandle_t handle, int m, int n, const T* alpha, const T* x, int incx,
                   const T* y, int incy, T* a, int lda) {
  if constexpr (kIsComplex<T>) {
    return RankOne(handle, m, n, alpha, x, incx, y, incy, a, lda, OpenBlas<T>::geru);
  } else {
    return RankOne(handle, m, n, alpha, x, incx, y, incy, a, lda, OpenBlas<T>::ger);
  }
}

// A += alpha x y^H.
template <typename T>
cublasStatus_t Gerc(cublasHandle_t handle, int m, int n, const T* alpha, const T* x, int incx,
                    const T* y, int incy, T* a, int lda) {
  return RankOne(handle, m, n, alpha, x, incx, y, incy, a, lda, OpenBlas<T>::gerc);
}

// Queues `call`: y = alpha A x + beta y for a symmetric or Hermitian A.
template <typename T, typename Call>
cublasStatus_t HalfTimesVector(cublasHandle_t handle, cublasFillMode_t fill, int n, const T* alpha,
                               const T* a, int lda, const T* x, int incx, const T* beta, T* y,
                               int incy, Call call) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (!IsValid(fill) || n < 0 || !IsLeading(lda, n) || incx == 0 || incy == 0 ||
        alpha == nullptr || beta == nullptr) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (n == 0) return CUBLAS_STATUS_SUCCESS;
    const Scalar<T> factor(context, alpha);
    const Scalar<T> addend(context, beta);
    return Enqueue(context,
                   {factor.extent(), addend.extent(), ReadMatrix(a, n, n, lda),
                    ReadVector(x, n, incx), WrittenVector(y, n, incy)},
                   [=] { call(factor.value(), addend.value()); });
  });
}

// The product of a complex symmetric matrix and a vector, absent from CBLAS.
template <typename T>
void ComplexSymv(cublasFillMode_t fill, int n, T alpha, const T* a, int lda, const T* x, int incx,
                 T beta, T* y, int incy) {
  for (int row = 0; row < n; ++row) {
    T sum{};
    for (int column = 0; column < n; ++column) {
      const bool stored = fill == CUBLAS_FILL_MODE_LOWER ? column <= row : column >= row;
      const T element =
          stored ? a[row + std::int64_t{column} * lda] : a[column + std::int64_t{row} * lda];
      sum += element * x[Place(column, n, incx)];
    }
    T& target = y[Place(row, n, incy)];
    target = alpha * sum + (beta == T{} ? T{} : beta * target);
  }
}

template <typename T>
cublasStatus_t Symv(cublasHandle_t handle, cublasFillMode_t fill, int n, const T* alpha, const T* a,
                    int lda, const T* x, int incx, const T* beta, T* y, int incy) {
  return HalfTimesVector(handle, fill, n, alpha, a, lda, x, incx, beta, y, incy,
                         [=](T factor, T addend) {
                           if constexpr (kIsComplex<T>) {
                             ComplexSymv(fill, n, factor, a, lda, x, incx, addend, y, incy);
                           } else {
                             OpenBlas<T>::symv(CblasColMajor, ToCblas(fill), n, factor, a, lda, x,
                                               incx, addend, y, incy);
                           }
                         });
}

template <typename T>
cublasStatus_t Hemv(cublasHandle_t handle, cublasFillMode_t fill, int n, const T* alpha, const T* a,
                    int lda, const T* x, int incx, const T* beta, T* y, int incy) {
  return HalfTimesVector(handle, fill, n, alpha, a, lda, x, incx, beta, y, incy,
                         [=](T factor, T addend) {
                           OpenBlas<T>::hemv(CblasColMajor, ToCblas(fill), n, &factor, a, lda, x,
                                             incx, &addend, y, incy);
                         });
}

// Queues `call`, an update of the stored half of a symmetric or Hermitian A; `alpha` is of type S.
template <typename S, typename T, typename Call>
cublasStatus_t UpdateHalf(cublasHandle_t handle, cublasFillMode_t fill, int n, const S* alpha,
                          const AccessExtent& x, const AccessExtent& y, T* a, int lda, bool steps,
                          Call call) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (!IsValid(fill) || n < 0 || !IsLeading(lda, n) || !steps || alpha == nullptr) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (n == 0) return CUBLAS_STATUS_SUCCESS;
    const Scalar<S> factor(context, alpha);
    return Enqueue(context, {factor.extent(), x, y, WrittenMatrix(a, n, n, lda)},
                   [=] { call(factor.value()); });
  });
}

// Calls visit(row, column) for every element of the half.
template <typename Visit>
void ForHalf(cublasFillMode_t fill, int n, const Visit& visit) {
  for (int column = 0; column < n; ++column) {
    const int begin = fill == CUBLAS_FILL_MODE_LOWER ? column : 0;
    const int end = fill == CUBLAS_FILL_MODE_LOWER ? n : column + 1;
    for (int row = begin; row < end; ++row) visit(row, column);
  }
}

template <typename T>
cublasStatus_t Syr(cublasHandle_t handle, cublasFillMode_t fill, int n, const T* alpha, const T* x,
                   int incx, T* a, int lda) {
  return UpdateHalf(handle, fill, n, alpha, ReadVector(x, n, incx), {}, a, lda, incx != 0,
                    [=](T factor) {
                      if constexpr (kIsComplex<T>) {
                        ForHalf(fill, n, [=](int row, int column) {
                          a[row + std::int64_t{column} * lda] +=
                              factor * x[Place(row, n, incx)] * x[Place(column, n, incx)];
                        });
                      } else {
                        OpenBlas<T>::syr(CblasColMajor, ToCblas(fill), n, factor, x, incx, a, lda);
                      }
                    });
}

template <typename T>
cublasStatus_t Her(cublasHandle_t handle, cublasFillMode_t fill, int n, const Real<T>* alpha,
                   const T* x, int incx, T* a, int lda) {
  return UpdateHalf(handle, fill, n, alpha, ReadVector(x, n, incx), {}, a, lda, incx != 0,
                    [=](Real<T> factor) {
                      OpenBlas<T>::her(CblasColMajor, ToCblas(fill), n, factor, x, incx, a, lda);
                    });
}

template <typename T>
cublasStatus_t Syr2(cublasHandle_t handle, cublasFillMode_t fill, int n, const T* alpha, const T* x,
                    int incx, const T* y, int incy, T* a, int lda) {
  return UpdateHalf(handle, fill, n, alpha, ReadVector(x, n, incx), ReadVector(y, n, incy), a, lda,
                    incx != 0 && incy != 0, [=](T factor) {
                      if constexpr (kIsComplex<T>) {
                        ForHalf(fill, n, [=](int row, int column) {
                          a[row + std::int64_t{column} * lda] +=
                              factor * (x[Place(row, n, incx)] * y[Place(column, n, incy)] +
                                        y[Place(row, n, incy)] * x[Place(column, n, incx)]);
                        });
                      } else {
                        OpenBlas<T>::syr2(CblasColMajor, ToCblas(fill), n, factor, x, incx, y, incy,
                                          a, lda);
                      }
                    });
}

template <typename T>
cublasStatus_t Her2(cublasHandle_t handle, cublasFillMode_t fill, int n, const T* alpha, const T* x,
                    int incx, const T* y, int incy, T* a, int lda) {
  return UpdateHalf(handle, fill, n, alpha, ReadVector(x, n, incx), ReadVector(y, n, incy), a, lda,
                    incx != 0 && incy != 0, [=](T factor) {
                      OpenBlas<T>::her2(CblasColMajor, ToCblas(fill), n, &factor, x, incx, y, incy,
                                        a, lda);
                    });
}

// Queues `call`, which replaces x by A x or by the solution of A z = x.
template <typename T, typename Call>
cublasStatus_t Triangular(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op,
                          cublasDiagType_t diagonal, int n, const T* a, int lda, T* x, int incx,
                          Call call) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (!AreValid(fill, op, diagonal) || n < 0 || !IsLeading(lda, n) || incx == 0) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (n == 0) return CUBLAS_STATUS_SUCCESS;
    return Enqueue(context, {ReadMatrix(a, n, n, lda), WrittenVector(x, n, incx)}, [=] {
      call(CblasColMajor, ToCblas(fill), ToCblas(op), ToCblas(diagonal), n, a, lda, x, incx);
    });
  });
}

template <typename T>
cublasStatus_t Trmv(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op,
                    cublasDiagType_t diagonal, int n, const T* a, int lda, T* x, int incx) {
  return Triangular(handle, fill, op, diagonal, n, a, lda, x, incx, OpenBlas<T>::trmv);
}

template <typename T>
cublasStatus_t Trsv(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op,
                    cublasDiagType_t diagonal, int n, const T* a, int lda, T* x, int incx) {
  return Triangular(handle, fill, op, diagonal, n, a, lda, x, incx, OpenBlas<T>::trsv);
}

}  // namespace

extern "C" {

#include "emulator/blas/matrix_vector_entries.inc"

}  // extern "C"
