// Matrices and matrices, but general products.
#include <vector>

#include "emulator/blas/api.h"
#include "emulator/blas/arguments.h"
#include "emulator/blas/openblas.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

// Queues `call`: C = alpha A B + beta C or alpha B A + beta C for a symmetric or Hermitian A.
template <typename T, typename Call>
cublasStatus_t HalfTimesMatrix(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill,
                               int m, int n, const T* alpha, const T* a, int lda, const T* b,
                               int ldb, const T* beta, T* c, int ldc, Call call) {
  return WithHandle(handle, [&](cublasContext& context) {
    const int order = side == CUBLAS_SIDE_LEFT ? m : n;
    if (!AreValid(side, fill) || m < 0 || n < 0 || !IsLeading(lda, order) || !IsLeading(ldb, m) ||
        !IsLeading(ldc, m) || alpha == nullptr || beta == nullptr) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    const Scalar<T> factor(context, alpha);
    const Scalar<T> addend(context, beta);
    return Enqueue(context,
                   {factor.extent(), addend.extent(), ReadMatrix(a, order, order, lda),
                    ReadMatrix(b, m, n, ldb), WrittenMatrix(c, m, n, ldc)},
                   [=] {
                     call(CblasColMajor, ToCblas(side), ToCblas(fill), m, n, Pass(factor.value()),
                          a, lda, b, ldb, Pass(addend.value()), c, ldc);
                   });
  });
}

// The symmetric matrix stands on the left or on the right.
template <typename T>
cublasStatus_t Symm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill, int m,
                    int n, const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta,
                    T* c, int ldc) {
  return HalfTimesMatrix(handle, side, fill, m, n, alpha, a, lda, b, ldb, beta, c, ldc,
                         OpenBlas<T>::symm);
}

template <typename T>
cublasStatus_t Hemm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill, int m,
                    int n, const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta,
                    T* c, int ldc) {
  return HalfTimesMatrix(handle, side, fill, m, n, alpha, a, lda, b, ldb, beta, c, ldc,
                         OpenBlas<T>::hemm);
}

// Queues `call`, which updates the stored half of the n x n matrix C with one or two n x k matrices
// (k x n if transposed). SA and SB are the types of alpha and beta.
template <typename SA, typename SB, typename T, typename Call>
cublasStatus_t RankK(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op, int n,
                     int k, const SA* alpha, const T* a, int lda, const T* b, int ldb,
                     const SB* beta, T* c, int ldc, Call call) {
  return WithHandle(handle, [&](cublasContext& context) {
    const bool plain = op == CUBLAS_OP_N;
    const int rows = plain ? n : k;
    const int columns = plain ? k : n;
    if (!AreValid(fill, op) || n < 0 || k < 0 || !IsLeading(lda, rows) || !IsLeading(ldb, rows) ||
        !IsLeading(ldc, n) || alpha == nullptr || beta == nullptr) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (n == 0) return CUBLAS_STATUS_SUCCESS;
    const Scalar<SA> factor(context, alpha);
    const Scalar<SB> addend(context, beta);
    return Enqueue(context,
                   {factor.extent(), addend.extent(), ReadMatrix(a, rows, columns, lda),
                    ReadMatrix(b, rows, columns, ldb), WrittenMatrix(c, n, n, ldc)},
                   [=] { call(factor.value(), addend.value()); });
  });
}

// CBLAS accepts only CblasConjTrans for Hermitian products and only CblasTrans for symmetric
// products; for real matrices both mean the same.
CBLAS_TRANSPOSE SymmetricOp(cublasOperation_t op) {
  return op == CUBLAS_OP_N ? CblasNoTrans : CblasTrans;
}
// As SymmetricOp, for Hermitian products.
CBLAS_TRANSPOSE HermitianOp(cublasOperation_t op) {
  return op == CUBLAS_OP_N ? CblasNoTrans : CblasConjTrans;
}

// C = alpha A A^T + beta C, or with A^T A.
template <typename T>
cublasStatus_t Syrk(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op, int n,
                    int k, const T* alpha, const T* a, int lda, const T* beta, T* c, int ldc) {
  if (kIsComplex<T> && op == CUBLAS_OP_C) return CUBLAS_STATUS_INVALID_VALUE;
  return RankK(handle, fill, op, n, k, alpha, a, lda, a, lda, beta, c, ldc,
               [=](T factor, T addend) {
                 OpenBlas<T>::syrk(CblasColMajor, ToCblas(fill), SymmetricOp(op), n, k,
                                   Pass(factor), a, lda, Pass(addend), c, ldc);
               });
}

// C = alpha A A^H + beta C, or with A^H A.
template <typename T>
cublasStatus_t Herk(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op, int n,
                    int k, const Real<T>* alpha, const T* a, int lda, const Real<T>* beta, T* c,
                    int ldc) {
  if (op == CUBLAS_OP_T) return CUBLAS_STATUS_INVALID_VALUE;
  return RankK(handle, fill, op, n, k, alpha, a, lda, a, lda, beta, c, ldc,
               [=](Real<T> factor, Real<T> addend) {
                 OpenBlas<T>::herk(CblasColMajor, ToCblas(fill), HermitianOp(op), n, k, factor, a,
                                   lda, addend, c, ldc);
               });
}

// C = alpha (A B^T + B A^T) + beta C, or with the transposes exchanged.
template <typename T>
cublasStatus_t Syr2k(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op, int n,
                     int k, const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta,
                     T* c, int ldc) {
  if (kIsComplex<T> && op == CUBLAS_OP_C) return CUBLAS_STATUS_INVALID_VALUE;
  return RankK(handle, fill, op, n, k, alpha, a, lda, b, ldb, beta, c, ldc,
               [=](T factor, T addend) {
                 OpenBlas<T>::syr2k(CblasColMajor, ToCblas(fill), SymmetricOp(op), n, k,
                                    Pass(factor), a, lda, b, ldb, Pass(addend), c, ldc);
               });
}

// C = alpha A B^H + conj(alpha) B A^H + beta C, or with the transposes exchanged.
template <typename T>
cublasStatus_t Her2k(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op, int n,
                     int k, const T* alpha, const T* a, int lda, const T* b, int ldb,
                     const Real<T>* beta, T* c, int ldc) {
  if (op == CUBLAS_OP_T) return CUBLAS_STATUS_INVALID_VALUE;
  return RankK(handle, fill, op, n, k, alpha, a, lda, b, ldb, beta, c, ldc,
               [=](T factor, Real<T> addend) {
                 OpenBlas<T>::her2k(CblasColMajor, ToCblas(fill), HermitianOp(op), n, k, &factor, a,
                                    lda, b, ldb, addend, c, ldc);
               });
}

// Adds the stored half of `product`, n x n, to `addend` times the same half of C.
template <typename S, typename T>
void AddHalf(cublasFillMode_t fill, int n, const std::vector<T>& product, S addend, T* c, int ldc) {
  for (int column = 0; column < n; ++column) {
    const int begin = fill == CUBLAS_FILL_MODE_LOWER ? column : 0;
    const int end = fill == CUBLAS_FILL_MODE_LOWER ? n : column + 1;
    for (int row = begin; row < end; ++row) {
      T& target = c[row + std::int64_t{column} * ldc];
      const T before = addend == S{} ? T{} : addend * target;
      target = before + product[static_cast<std::size_t>(row + std::int64_t{column} * n)];
    }
  }
}

// The half of alpha op(A) op'(B) + beta C, where op' is `second`.
template <typename T>
std::vector<T> ProductOf(CBLAS_TRANSPOSE first, CBLAS_TRANSPOSE second, int n, int k, T alpha,
                         const T* a, int lda, const T* b, int ldb) {
  std::vector<T> product(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
  const T zero{};
  OpenBlas<T>::gemm(CblasColMajor, first, second, n, n, k, Pass(alpha), a, lda, b, ldb, Pass(zero),
                    product.data(), n);
  return product;
}

// C = alpha A B^T + beta C, of which only one half is computed: the caller knows the symmetry.
template <typename T>
cublasStatus_t Syrkx(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op, int n,
                     int k, const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta,
                     T* c, int ldc) {
  if (kIsComplex<T> && op == CUBLAS_OP_C) return CUBLAS_STATUS_INVALID_VALUE;
  return RankK(handle, fill, op, n, k, alpha, a, lda, b, ldb, beta, c, ldc,
               [=](T factor, T addend) {
                 const bool plain = op == CUBLAS_OP_N;
                 AddHalf(fill, n,
                         ProductOf(plain ? CblasNoTrans : CblasTrans,
                                   plain ? CblasTrans : CblasNoTrans, n, k, factor, a, lda, b, ldb),
                         addend, c, ldc);
               });
}

// As Syrkx, for Hermitian results.
template <typename T>
cublasStatus_t Herkx(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op, int n,
                     int k, const T* alpha, const T* a, int lda, const T* b, int ldb,
                     const Real<T>* beta, T* c, int ldc) {
  if (op == CUBLAS_OP_T) return CUBLAS_STATUS_INVALID_VALUE;
  return RankK(
      handle, fill, op, n, k, alpha, a, lda, b, ldb, beta, c, ldc, [=](T factor, Real<T> addend) {
        const bool plain = op == CUBLAS_OP_N;
        AddHalf(fill, n,
                ProductOf(plain ? CblasNoTrans : CblasConjTrans,
                          plain ? CblasConjTrans : CblasNoTrans, n, k, factor, a, lda, b, ldb),
                addend, c, ldc);
        for (int i = 0; i < n; ++i) c[i + std::int64_t{i} * ldc].imag(0);
      });
}

// Unlike in BLAS, the product goes to a separate matrix C, which may be B.
template <typename T>
cublasStatus_t Trmm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill,
                    cublasOperation_t op, cublasDiagType_t diagonal, int m, int n, const T* alpha,
                    const T* a, int lda, const T* b, int ldb, T* c, int ldc) {
  return WithHandle(handle, [&](cublasContext& context) {
    const int order = side == CUBLAS_SIDE_LEFT ? m : n;
    if (!AreValid(side, fill, op, diagonal) || m < 0 || n < 0 || !IsLeading(lda, order) ||
        !IsLeading(ldb, m) || !IsLeading(ldc, m) || alpha == nullptr) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    const Scalar<T> factor(context, alpha);
    return Enqueue(
        context,
        {factor.extent(), ReadMatrix(a, order, order, lda), ReadMatrix(b, m, n, ldb),
         WrittenMatrix(c, m, n, ldc)},
        [=] {
          for (int column = 0; column < n && b != c; ++column) {
            std::copy_n(b + std::int64_t{column} * ldb, m, c + std::int64_t{column} * ldc);
          }
          OpenBlas<T>::trmm(CblasColMajor, ToCblas(side), ToCblas(fill), ToCblas(op),
                            ToCblas(diagonal), m, n, Pass(factor.value()), a, lda, c, ldc);
        });
  });
}

// Solves op(A) X = alpha B, or X op(A) = alpha B, in place of B.
template <typename T>
cublasStatus_t Trsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill,
                    cublasOperation_t op, cublasDiagType_t diagonal, int m, int n, const T* alpha,
                    const T* a, int lda, T* b, int ldb) {
  return WithHandle(handle, [&](cublasContext& context) {
    const int order = side == CUBLAS_SIDE_LEFT ? m : n;
    if (!AreValid(side, fill, op, diagonal) || m < 0 || n < 0 || !IsLeading(lda, order) ||
        !IsLeading(ldb, m) || alpha == nullptr) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    const Scalar<T> factor(context, alpha);
    return Enqueue(
        context, {factor.extent(), ReadMatrix(a, order, order, lda), WrittenMatrix(b, m, n, ldb)},
        [=] {
          OpenBlas<T>::trsm(CblasColMajor, ToCblas(side), ToCblas(fill), ToCblas(op),
                            ToCblas(diagonal), m, n, Pass(factor.value()), a, lda, b, ldb);
        });
  });
}

// Element (row, column) of op(A).
template <typename T>
T ElementOf(cublasOperation_t op, const T* a, int lda, int row, int column) {
  if (op == CUBLAS_OP_N) return a[row + std::int64_t{column} * lda];
  const T element = a[column + std::int64_t{row} * lda];
  return op == CUBLAS_OP_C ? Conjugate(element) : element;
}

// C may be an A or B that is not transposed: every element is read before it is written. A matrix
// with a zero factor is not read.
template <typename T>
cublasStatus_t Geam(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                    int n, const T* alpha, const T* a, int lda, const T* beta, const T* b, int ldb,
                    T* c, int ldc) {
  return WithHandle(handle, [&](cublasContext& context) {
    const int a_rows = op_a == CUBLAS_OP_N ? m : n;
    const int b_rows = op_b == CUBLAS_OP_N ? m : n;
    if (!AreValid(op_a, op_b) || m < 0 || n < 0 || !IsLeading(lda, a_rows) ||
        !IsLeading(ldb, b_rows) || !IsLeading(ldc, m) || alpha == nullptr || beta == nullptr) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    const Scalar<T> first(context, alpha);
    const Scalar<T> second(context, beta);
    const bool uses_a = context.pointer_mode == CUBLAS_POINTER_MODE_DEVICE || *alpha != T{};
    const bool uses_b = context.pointer_mode == CUBLAS_POINTER_MODE_DEVICE || *beta != T{};
    return Enqueue(context,
                   {first.extent(), second.extent(),
                    uses_a ? ReadMatrix(a, a_rows, m + n - a_rows, lda) : AccessExtent{},
                    uses_b ? ReadMatrix(b, b_rows, m + n - b_rows, ldb) : AccessExtent{},
                    WrittenMatrix(c, m, n, ldc)},
                   [=] {
                     const T x = first.value();
                     const T y = second.value();
                     for (int column = 0; column < n; ++column) {
                       for (int row = 0; row < m; ++row) {
                         T sum{};
                         if (x != T{}) sum = x * ElementOf(op_a, a, lda, row, column);
                         if (y != T{}) sum += y * ElementOf(op_b, b, ldb, row, column);
                         c[row + std::int64_t{column} * ldc] = sum;
                       }
                     }
                   });
  });
}

// Scales rows or columns of A by the elements of x.
template <typename T>
cublasStatus_t Dgmm(cublasHandle_t handle, cublasSideMode_t side, int m, int n, const T* a, int lda,
                    const T* x, int incx, T* c, int ldc) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (!IsValid(side) || m < 0 || n < 0 || !IsLeading(lda, m) || !IsLeading(ldc, m)) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    const int length = side == CUBLAS_SIDE_LEFT ? m : n;
    return Enqueue(
        context,
        {ReadMatrix(a, m, n, lda), ReadVector(x, length, incx), WrittenMatrix(c, m, n, ldc)}, [=] {
          for (int column = 0; column < n; ++column) {
            for (int row = 0; row < m; ++row) {
              const int index = side == CUBLAS_SIDE_LEFT ? row : column;
              c[row + std::int64_t{column} * ldc] =
                  a[row + std::int64_t{column} * lda] * x[Place(index, length, incx)];
            }
          }
        });
  });
}

}  // namespace

extern "C" {

#include "emulator/blas/matrix_entries.inc"

}  // extern "C"
