// Banded and packed matrices, and vectors.
#include "emulator/blas/api.h"
#include "emulator/blas/arguments.h"
#include "emulator/blas/openblas.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

// The stored half of an n x n matrix, column after column.
template <typename T>
AccessExtent Packed(T* a, int n) {
  const auto elements = n < 0 ? 0 : std::int64_t{n} * (std::int64_t{n} + 1) / 2;
  return VectorExtent(a, elements, 1, sizeof(T), !std::is_const_v<T>);
}

// The diagonals of a band matrix with n columns, `beside` of them next to the main diagonal.
template <typename T>
AccessExtent Diagonals(const T* a, std::int64_t beside, int n, int lda) {
  return MatrixExtent(a, beside + 1, n, lda, sizeof(T), false);
}

// Whether `lda` has room for the diagonals of a band matrix.
bool IsBand(int diagonals_below, int diagonals_above, int lda) {
  return diagonals_below >= 0 && diagonals_above >= 0 &&
         lda > std::int64_t{diagonals_below} + diagonals_above;
}

// y = alpha op(A) x + beta y for a general band matrix.
template <typename T>
cublasStatus_t Gbmv(cublasHandle_t handle, cublasOperation_t op, int m, int n, int kl, int ku,
                    const T* alpha, const T* a, int lda, const T* x, int incx, const T* beta, T* y,
                    int incy) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (!IsValid(op) || m < 0 || n < 0 || !IsBand(kl, ku, lda) || incx == 0 || incy == 0 ||
        alpha == nullptr || beta == nullptr) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    const bool plain = op == CUBLAS_OP_N;
    const Scalar<T> factor(context, alpha);
    const Scalar<T> addend(context, beta);
    return Enqueue(context,
                   {factor.extent(), addend.extent(), Diagonals(a, std::int64_t{kl} + ku, n, lda),
                    ReadVector(x, plain ? n : m, incx), WrittenVector(y, plain ? m : n, incy)},
                   [=] {
                     OpenBlas<T>::gbmv(CblasColMajor, ToCblas(op), m, n, kl, ku,
                                       Pass(factor.value()), a, lda, x, incx, Pass(addend.value()),
                                       y, incy);
                   });
  });
}

// y = alpha A x + beta y, computed by `call`; `matrix` is the extent of A.
template <typename T, typename Call>
cublasStatus_t TimesVector(cublasHandle_t handle, bool valid, int n, const T* alpha,
                           const AccessExtent& matrix, const T* x, int incx, const T* beta, T* y,
                           int incy, Call call) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (!valid || n < 0 || incx == 0 || incy == 0 || alpha == nullptr || beta == nullptr) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (n == 0) return CUBLAS_STATUS_SUCCESS;
    const Scalar<T> factor(context, alpha);
    const Scalar<T> addend(context, beta);
    return Enqueue(context,
                   {factor.extent(), addend.extent(), matrix, ReadVector(x, n, incx),
                    WrittenVector(y, n, incy)},
                   [=] { call(factor.value(), addend.value()); });
  });
}

// y = alpha A x + beta y for a symmetric band matrix.
template <typename T>
cublasStatus_t Sbmv(cublasHandle_t handle, cublasFillMode_t fill, int n, int k, const T* alpha,
                    const T* a, int lda, const T* x, int incx, const T* beta, T* y, int incy) {
  return TimesVector(handle, IsValid(fill) && IsBand(k, 0, lda), n, alpha, Diagonals(a, k, n, lda),
                     x, incx, beta, y, incy, [=](T factor, T addend) {
                       OpenBlas<T>::sbmv(CblasColMajor, ToCblas(fill), n, k, factor, a, lda, x,
                                         incx, addend, y, incy);
                     });
}

// y = alpha A x + beta y for a Hermitian band matrix.
template <typename T>
cublasStatus_t Hbmv(cublasHandle_t handle, cublasFillMode_t fill, int n, int k, const T* alpha,
                    const T* a, int lda, const T* x, int incx, const T* beta, T* y, int incy) {
  return TimesVector(handle, IsValid(fill) && IsBand(k, 0, lda), n, alpha, Diagonals(a, k, n, lda),
                     x, incx, beta, y, incy, [=](T factor, T addend) {
                       OpenBlas<T>::hbmv(CblasColMajor, ToCblas(fill), n, k, &factor, a, lda, x,
                                         incx, &addend, y, incy);
                     });
}

// y = alpha A x + beta y for a packed symmetric matrix.
template <typename T>
cublasStatus_t Spmv(cublasHandle_t handle, cublasFillMode_t fill, int n, const T* alpha, const T* a,
                    const T* x, int incx, const T* beta, T* y, int incy) {
  return TimesVector(handle, IsValid(fill), n, alpha, Packed(a, n), x, incx, beta, y, incy,
                     [=](T factor, T addend) {
                       OpenBlas<T>::spmv(CblasColMajor, ToCblas(fill), n, factor, a, x, incx,
                                         addend, y, incy);
                     });
}

// y = alpha A x + beta y for a packed Hermitian matrix.
template <typename T>
cublasStatus_t Hpmv(cublasHandle_t handle, cublasFillMode_t fill, int n, const T* alpha, const T* a,
                    const T* x, int incx, const T* beta, T* y, int incy) {
  return TimesVector(handle, IsValid(fill), n, alpha, Packed(a, n), x, incx, beta, y, incy,
                     [=](T factor, T addend) {
                       OpenBlas<T>::hpmv(CblasColMajor, ToCblas(fill), n, &factor, a, x, incx,
                                         &addend, y, incy);
                     });
}

// Queues `call`, an update of the packed half `a`; `alpha` is of type S.
template <typename S, typename T, typename Call>
cublasStatus_t UpdatePacked(cublasHandle_t handle, cublasFillMode_t fill, int n, const S* alpha,
                            const AccessExtent& x, const AccessExtent& y, T* a, bool steps,
                            Call call) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (!IsValid(fill) || n < 0 || !steps || alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    if (n == 0) return CUBLAS_STATUS_SUCCESS;
    const Scalar<S> factor(context, alpha);
    return Enqueue(context, {factor.extent(), x, y, Packed(a, n)}, [=] { call(factor.value()); });
  });
}

// A += alpha x x^T for a packed symmetric matrix.
template <typename T>
cublasStatus_t Spr(cublasHandle_t handle, cublasFillMode_t fill, int n, const T* alpha, const T* x,
                   int incx, T* a) {
  return UpdatePacked(
      handle, fill, n, alpha, ReadVector(x, n, incx), {}, a, incx != 0,
      [=](T factor) { OpenBlas<T>::spr(CblasColMajor, ToCblas(fill), n, factor, x, incx, a); });
}

// A += alpha x x^H for a packed Hermitian matrix.
template <typename T>
cublasStatus_t Hpr(cublasHandle_t handle, cublasFillMode_t fill, int n, const Real<T>* alpha,
                   const T* x, int incx, T* a) {
  return UpdatePacked(handle, fill, n, alpha, ReadVector(x, n, incx), {}, a, incx != 0,
                      [=](Real<T> factor) {
                        OpenBlas<T>::hpr(CblasColMajor, ToCblas(fill), n, factor, x, incx, a);
                      });
}

// A += alpha (x y^T + y x^T) for a packed symmetric matrix.
template <typename T>
cublasStatus_t Spr2(cublasHandle_t handle, cublasFillMode_t fill, int n, const T* alpha, const T* x,
                    int incx, const T* y, int incy, T* a) {
  return UpdatePacked(handle, fill, n, alpha, ReadVector(x, n, incx), ReadVector(y, n, incy), a,
                      incx != 0 && incy != 0, [=](T factor) {
                        OpenBlas<T>::spr2(CblasColMajor, ToCblas(fill), n, factor, x, incx, y, incy,
                                          a);
                      });
}

// A += alpha x y^H + conj(alpha) y x^H for a packed Hermitian matrix.
template <typename T>
cublasStatus_t Hpr2(cublasHandle_t handle, cublasFillMode_t fill, int n, const T* alpha, const T* x,
                    int incx, const T* y, int incy, T* a) {
  return UpdatePacked(handle, fill, n, alpha, ReadVector(x, n, incx), ReadVector(y, n, incy), a,
                      incx != 0 && incy != 0, [=](T factor) {
                        OpenBlas<T>::hpr2(CblasColMajor, ToCblas(fill), n, &factor, x, incx, y,
                                          incy, a);
                      });
}

// Queues `call`, which replaces x by A x or by the solution of A z = x; `matrix` is A's extent.
template <typename T, typename Call>
cublasStatus_t Triangular(cublasHandle_t handle, bool valid, int n, const AccessExtent& matrix,
                          T* x, int incx, Call call) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (!valid || n < 0 || incx == 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (n == 0) return CUBLAS_STATUS_SUCCESS;
    return Enqueue(context, {matrix, WrittenVector(x, n, incx)}, call);
  });
}

// As Triangular for a band matrix; `call` takes the arguments of CBLAS.
template <typename T, typename Call>
cublasStatus_t BandTriangular(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op,
                              cublasDiagType_t diagonal, int n, int k, const T* a, int lda, T* x,
                              int incx, Call call) {
  return Triangular(handle, AreValid(fill, op, diagonal) && IsBand(k, 0, lda), n,
                    Diagonals(a, k, n, lda), x, incx, [=] {
                      call(CblasColMajor, ToCblas(fill), ToCblas(op), ToCblas(diagonal), n, k, a,
                           lda, x, incx);
                    });
}

template <typename T>
cublasStatus_t Tbmv(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op,
                    cublasDiagType_t diagonal, int n, int k, const T* a, int lda, T* x, int incx) {
  return BandTriangular(handle, fill, op, diagonal, n, k, a, lda, x, incx, OpenBlas<T>::tbmv);
}

template <typename T>
cublasStatus_t Tbsv(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op,
                    cublasDiagType_t diagonal, int n, int k, const T* a, int lda, T* x, int incx) {
  return BandTriangular(handle, fill, op, diagonal, n, k, a, lda, x, incx, OpenBlas<T>::tbsv);
}

// As Triangular for a packed matrix; `call` takes the arguments of CBLAS.
template <typename T, typename Call>
cublasStatus_t PackedTriangular(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op,
                                cublasDiagType_t diagonal, int n, const T* a, T* x, int incx,
                                Call call) {
  return Triangular(handle, AreValid(fill, op, diagonal), n, Packed(a, n), x, incx, [=] {
    call(CblasColMajor, ToCblas(fill), ToCblas(op), ToCblas(diagonal), n, a, x, incx);
  });
}

template <typename T>
cublasStatus_t Tpmv(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op,
                    cublasDiagType_t diagonal, int n, const T* a, T* x, int incx) {
  return PackedTriangular(handle, fill, op, diagonal, n, a, x, incx, OpenBlas<T>::tpmv);
}

template <typename T>
cublasStatus_t Tpsv(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op,
                    cublasDiagType_t diagonal, int n, const T* a, T* x, int incx) {
  return PackedTriangular(handle, fill, op, diagonal, n, a, x, incx, OpenBlas<T>::tpsv);
}

// Calls visit(packed index, row, column) for every element of the half.
template <typename Visit>
void ForPacked(cublasFillMode_t fill, int n, Visit visit) {
  std::int64_t index = 0;
  for (int column = 0; column < n; ++column) {
    const int begin = fill == CUBLAS_FILL_MODE_LOWER ? column : 0;
    const int end = fill == CUBLAS_FILL_MODE_LOWER ? n : column + 1;
    for (int row = begin; row < end; ++row) visit(index++, row, column);
  }
}

// Unpacks a triangle; the other half of A stays as it is.
template <typename T>
cublasStatus_t Tpttr(cublasHandle_t handle, cublasFillMode_t fill, int n, const T* packed, T* a,
                     int lda) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (!IsValid(fill) || n < 0 || !IsLeading(lda, n)) return CUBLAS_STATUS_INVALID_VALUE;
    return Enqueue(context, {Packed(packed, n), WrittenMatrix(a, n, n, lda)}, [=] {
      ForPacked(fill, n, [=](std::int64_t index, int row, int column) {
        a[row + std::int64_t{column} * lda] = packed[index];
      });
    });
  });
}

// Packs a triangle of A.
template <typename T>
cublasStatus_t Trttp(cublasHandle_t handle, cublasFillMode_t fill, int n, const T* a, int lda,
                     T* packed) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (!IsValid(fill) || n < 0 || !IsLeading(lda, n)) return CUBLAS_STATUS_INVALID_VALUE;
    return Enqueue(context, {ReadMatrix(a, n, n, lda), Packed(packed, n)}, [=] {
      ForPacked(fill, n, [=](std::int64_t index, int row, int column) {
        packed[index] = a[row + std::int64_t{column} * lda];
      });
    });
  });
}

}  // namespace

extern "C" {

#include "emulator/blas/band_packed_entries.inc"

}  // extern "C"
