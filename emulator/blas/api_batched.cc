// Many small problems in one call, with arrays of matrix addresses in device memory.
#include <algorithm>
#include <climits>
#include <numeric>
#include <vector>

#include "emulator/blas/api.h"
#include "emulator/blas/arguments.h"
#include "emulator/blas/lapack.h"
#include "emulator/blas/openblas.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

// The addresses in an array in device memory.
template <typename T>
using Table = std::vector<T*>;

// Waits for the stream, reads `count` addresses into `table`, and checks `extent(address)` for
// each. A host function may not call the driver, so this happens before queueing.
template <typename T, typename ExtentOf>
bool ReadTable(const cublasContext& context, T* const* array, int count, ExtentOf extent,
               Table<T>& table) {
  if (!Accessible(context, VectorExtent(array, count, 1, sizeof(void*), false))) return false;
  if (context.driver->stream_synchronize(context.stream) != CUDA_SUCCESS) return false;
  table.assign(array, array + count);
  return std::all_of(table.begin(), table.end(),
                     [&](T* address) { return Accessible(context, extent(address)); });
}

// Returns a function from a matrix's address to its extent; const T means a matrix that is read.
template <typename T>
auto MatrixOf(int rows, int columns, int leading) {
  return
      [=](T* a) { return MatrixExtent(a, rows, columns, leading, sizeof(T), !std::is_const_v<T>); };
}
// As MatrixOf, for vectors.
template <typename T>
auto VectorOf(int n, int increment) {
  return [=](T* x) { return VectorExtent(x, n, increment, sizeof(T), !std::is_const_v<T>); };
}

// Returns the number of the first parameter that a function does not accept, negative and counted
// from one as in LAPACK, or 0.
int FirstRefused(std::initializer_list<bool> accepted) {
  const auto refused = std::find(accepted.begin(), accepted.end(), false);
  return refused == accepted.end() ? 0 : -static_cast<int>(refused - accepted.begin()) - 1;
}

// GEMV for each problem of a batch.
template <typename T>
cublasStatus_t GemvBatched(cublasHandle_t handle, cublasOperation_t op, int m, int n,
                           const T* alpha, const T* const* a, int lda, const T* const* x, int incx,
                           const T* beta, T* const* y, int incy, int count) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (!IsValid(op) || m < 0 || n < 0 || !IsLeading(lda, m) || incx == 0 || incy == 0 ||
        count < 0 || alpha == nullptr || beta == nullptr) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (m == 0 || n == 0 || count == 0) return CUBLAS_STATUS_SUCCESS;
    const bool plain = op == CUBLAS_OP_N;
    Table<const T> matrices;
    Table<const T> inputs;
    Table<T> outputs;
    if (!ReadTable(context, a, count, MatrixOf<const T>(m, n, lda), matrices) ||
        !ReadTable(context, x, count, VectorOf<const T>(plain ? n : m, incx), inputs) ||
        !ReadTable(context, y, count, VectorOf<T>(plain ? m : n, incy), outputs)) {
      return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    const Scalar<T> factor(context, alpha);
    const Scalar<T> addend(context, beta);
    return Enqueue(context, {factor.extent(), addend.extent()}, [=] {
      for (std::size_t i = 0; i < matrices.size(); ++i) {
        OpenBlas<T>::gemv(CblasColMajor, ToCblas(op), m, n, Pass(factor.value()), matrices[i], lda,
                          inputs[i], incx, Pass(addend.value()), outputs[i], incy);
      }
    });
  });
}

template <typename T>
cublasStatus_t GemvStridedBatched(cublasHandle_t handle, cublasOperation_t op, int m, int n,
                                  const T* alpha, const T* a, int lda, long long a_stride,
                                  const T* x, int incx, long long x_stride, const T* beta, T* y,
                                  int incy, long long y_stride, int count) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (!IsValid(op) || m < 0 || n < 0 || !IsLeading(lda, m) || incx == 0 || incy == 0 ||
        count < 0 || alpha == nullptr || beta == nullptr) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (m == 0 || n == 0 || count == 0) return CUBLAS_STATUS_SUCCESS;
    const bool plain = op == CUBLAS_OP_N;
    const Scalar<T> factor(context, alpha);
    const Scalar<T> addend(context, beta);
    // A vector is a matrix of one row whose columns are |increment| apart.
    return Enqueue(context,
                   {factor.extent(), addend.extent(),
                    MatrixExtent(a, m, n, lda, sizeof(T), false, a_stride, count),
                    MatrixExtent(x, 1, plain ? n : m, incx, sizeof(T), false, x_stride, count),
                    MatrixExtent(y, 1, plain ? m : n, incy, sizeof(T), true, y_stride, count)},
                   [=] {
                     for (int i = 0; i < count; ++i) {
                       OpenBlas<T>::gemv(CblasColMajor, ToCblas(op), m, n, Pass(factor.value()),
                                         a + i * a_stride, lda, x + i * x_stride, incx,
                                         Pass(addend.value()), y + i * y_stride, incy);
                     }
                   });
  });
}

// Solves op(A) X = alpha B, or X op(A) = alpha B, in place of B, for each triangular A.
template <typename T>
cublasStatus_t TrsmBatched(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill,
                           cublasOperation_t op, cublasDiagType_t diagonal, int m, int n,
                           const T* alpha, const T* const* a, int lda, T* const* b, int ldb,
                           int count) {
  return WithHandle(handle, [&](cublasContext& context) {
    const int order = side == CUBLAS_SIDE_LEFT ? m : n;
    if (!AreValid(side, fill, op, diagonal) || m < 0 || n < 0 || !IsLeading(lda, order) ||
        !IsLeading(ldb, m) || count < 0 || alpha == nullptr) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (m == 0 || n == 0 || count == 0) return CUBLAS_STATUS_SUCCESS;
    Table<const T> triangles;
    Table<T> sides;
    if (!ReadTable(context, a, count, MatrixOf<const T>(order, order, lda), triangles) ||
        !ReadTable(context, b, count, MatrixOf<T>(m, n, ldb), sides)) {
      return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    const Scalar<T> factor(context, alpha);
    return Enqueue(context, {factor.extent()}, [=] {
      for (std::size_t i = 0; i < triangles.size(); ++i) {
        OpenBlas<T>::trsm(CblasColMajor, ToCblas(side), ToCblas(fill), ToCblas(op),
                          ToCblas(diagonal), m, n, Pass(factor.value()), triangles[i], lda,
                          sides[i], ldb);
      }
    });
  });
}

// LU without pivoting, in place: the number of the first zero on the diagonal of U, or 0.
template <typename T>
int FactorizeUnpivoted(int n, T* a, int lda) {
  const auto at = [&](int row, int column) -> T& { return a[row + std::int64_t{column} * lda]; };
  int info = 0;
  for (int k = 0; k < n; ++k) {
    if (at(k, k) == T{}) {
      if (info == 0) info = k + 1;
      continue;
    }
    for (int row = k + 1; row < n; ++row) at(row, k) /= at(k, k);
    for (int column = k + 1; column < n; ++column) {
      for (int row = k + 1; row < n; ++row) at(row, column) -= at(row, k) * at(k, column);
    }
  }
  return info;
}

// LU-factorises a matrix in place. Returns LAPACK's info: the first zero pivot, counted from one.
template <typename T>
int Factorize(int n, T* a, int lda, int* pivots) {
  if (pivots == nullptr) return FactorizeUnpivoted(n, a, lda);
  int info = 0;
  Lapack<T>::getrf(&n, &n, a, &lda, pivots, &info);
  return info;
}

// The pivots of a factorisation without pivoting.
std::vector<int> NoPivots(int n) {
  std::vector<int> pivots(static_cast<std::size_t>(n));
  std::iota(pivots.begin(), pivots.end(), 1);
  return pivots;
}

// Returns a copy of a problem's pivots. Empty if a pivot is out of range: LAPACK would swap such
// rows all the same.
std::vector<int> ReadPivots(int n, const int* pivots) {
  if (pivots == nullptr) return NoPivots(n);
  std::vector<int> own(pivots, pivots + n);
  const bool are_rows =
      std::all_of(own.begin(), own.end(), [n](int p) { return p >= 1 && p <= n; });
  return are_rows ? own : std::vector<int>();
}

// Elements of LAPACK workspace: `length` for each of `count` rows or columns, at most a block of
// which LAPACK handles at a time.
int Workspace(int length, int count) {
  constexpr int kBlock = 64;  // it never takes more
  const std::int64_t elements = std::int64_t{length} * std::min(count, kBlock);
  return static_cast<int>(std::min<std::int64_t>(elements, INT_MAX));
}

// Inverts, in place, the result of Factorize.
template <typename T>
int Invert(int n, T* a, int lda, const std::vector<int>& pivots) {
  const int room = Workspace(n, n);
  std::vector<T> work(static_cast<std::size_t>(room));
  int info = 0;
  Lapack<T>::getri(&n, a, &lda, pivots.data(), work.data(), &room, &info);
  return info;
}

template <typename T>
void CopyMatrix(int rows, int columns, const T* from, int from_leading, T* to, int to_leading) {
  for (int column = 0; column < columns; ++column) {
    std::copy_n(from + std::int64_t{column} * from_leading, rows,
                to + std::int64_t{column} * to_leading);
  }
}

// Returns the part of problem `i` in an array of `stride` elements a problem, or null without an
// array.
template <typename T>
T* Nth(T* array, std::size_t i, int stride) {
  return array == nullptr ? nullptr : array + i * static_cast<std::size_t>(stride);
}

// LU factorisations. Without `pivots` rows are not exchanged.
template <typename T>
cublasStatus_t GetrfBatched(cublasHandle_t handle, int n, T* const* a, int lda, int* pivots,
                            int* info, int count) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (n < 0 || !IsLeading(lda, n) || count < 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (n == 0 || count == 0) return CUBLAS_STATUS_SUCCESS;
    Table<T> matrices;
    if (!ReadTable(context, a, count, MatrixOf<T>(n, n, lda), matrices)) {
      return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    return Enqueue(context,
                   {WrittenVector(info, count, 1),
                    pivots == nullptr ? AccessExtent{} : WrittenMatrix(pivots, n, count, n)},
                   [=] {
                     for (std::size_t i = 0; i < matrices.size(); ++i) {
                       info[i] = Factorize(n, matrices[i], lda, Nth(pivots, i, n));
                     }
                   });
  });
}

// Solves op(A) X = B in place of B, from the factors of GetrfBatched.
template <typename T>
cublasStatus_t GetrsBatched(cublasHandle_t handle, cublasOperation_t op, int n, int columns,
                            const T* const* a, int lda, const int* pivots, T* const* b, int ldb,
                            int* info, int count) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (info == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    *info = FirstRefused({true, IsValid(op), n >= 0, columns >= 0, true, IsLeading(lda, n), true,
                          true, IsLeading(ldb, n), true, count >= 0});
    if (*info != 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (n == 0 || columns == 0 || count == 0) return CUBLAS_STATUS_SUCCESS;
    Table<const T> factors;
    Table<T> sides;
    if (!ReadTable(context, a, count, MatrixOf<const T>(n, n, lda), factors) ||
        !ReadTable(context, b, count, MatrixOf<T>(n, columns, ldb), sides)) {
      return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    return Enqueue(context, {pivots == nullptr ? AccessExtent{} : ReadMatrix(pivots, n, count, n)},
                   [=] {
                     const char trans = op == CUBLAS_OP_N ? 'N' : op == CUBLAS_OP_T ? 'T' : 'C';
                     for (std::size_t i = 0; i < factors.size(); ++i) {
                       const std::vector<int> own = ReadPivots(n, Nth(pivots, i, n));
                       if (own.empty()) continue;
                       int ignored = 0;
                       Lapack<T>::getrs(&trans, &n, &columns, factors[i], &lda, own.data(),
                                        sides[i], &ldb, &ignored, 1);
                     }
                   });
  });
}

// Inverts matrices from the factors of GetrfBatched, into separate matrices.
template <typename T>
cublasStatus_t GetriBatched(cublasHandle_t handle, int n, const T* const* a, int lda,
                            const int* pivots, T* const* c, int ldc, int* info, int count) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (n < 0 || !IsLeading(lda, n) || !IsLeading(ldc, n) || count < 0) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (n == 0 || count == 0) return CUBLAS_STATUS_SUCCESS;
    Table<const T> factors;
    Table<T> inverses;
    if (!ReadTable(context, a, count, MatrixOf<const T>(n, n, lda), factors) ||
        !ReadTable(context, c, count, MatrixOf<T>(n, n, ldc), inverses)) {
      return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    return Enqueue(context,
                   {WrittenVector(info, count, 1),
                    pivots == nullptr ? AccessExtent{} : ReadMatrix(pivots, n, count, n)},
                   [=] {
                     for (std::size_t i = 0; i < factors.size(); ++i) {
                       constexpr int kWrongPivots = -5;  // the number of the parameter
                       const std::vector<int> own = ReadPivots(n, Nth(pivots, i, n));
                       info[i] = kWrongPivots;
                       if (own.empty()) continue;
                       CopyMatrix(n, n, factors[i], lda, inverses[i], ldc);
                       info[i] = Invert(n, inverses[i], ldc, own);
                     }
                   });
  });
}

// Inverts small matrices in one step.
template <typename T>
cublasStatus_t MatinvBatched(cublasHandle_t handle, int n, const T* const* a, int lda,
                             T* const* inverse, int ldi, int* info, int count) {
  constexpr int kMaxOrder = 32;  // cuBLAS's own limit
  return WithHandle(handle, [&](cublasContext& context) {
    if (n < 0 || n > kMaxOrder || !IsLeading(lda, n) || !IsLeading(ldi, n) || count < 0) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (n == 0 || count == 0) return CUBLAS_STATUS_SUCCESS;
    Table<const T> matrices;
    Table<T> inverses;
    if (!ReadTable(context, a, count, MatrixOf<const T>(n, n, lda), matrices) ||
        !ReadTable(context, inverse, count, MatrixOf<T>(n, n, ldi), inverses)) {
      return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    return Enqueue(context, {WrittenVector(info, count, 1)}, [=] {
      for (std::size_t i = 0; i < matrices.size(); ++i) {
        std::vector<int> pivots(static_cast<std::size_t>(n));
        CopyMatrix(n, n, matrices[i], lda, inverses[i], ldi);
        info[i] = Factorize(n, inverses[i], ldi, pivots.data());
        if (info[i] == 0) info[i] = Invert(n, inverses[i], ldi, pivots);
      }
    });
  });
}

// QR factorisations.
template <typename T>
cublasStatus_t GeqrfBatched(cublasHandle_t handle, int m, int n, T* const* a, int lda,
                            T* const* tau, int* info, int count) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (info == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    *info = FirstRefused({true, m >= 0, n >= 0, true, IsLeading(lda, m), true, true, count >= 0});
    if (*info != 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (m == 0 || n == 0 || count == 0) return CUBLAS_STATUS_SUCCESS;
    Table<T> matrices;
    Table<T> scalars;
    if (!ReadTable(context, a, count, MatrixOf<T>(m, n, lda), matrices) ||
        !ReadTable(context, tau, count, VectorOf<T>(std::min(m, n), 1), scalars)) {
      return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    return Enqueue(context, {}, [=] {
      const int room = Workspace(n, std::min(m, n));
      std::vector<T> work(static_cast<std::size_t>(room));
      for (std::size_t i = 0; i < matrices.size(); ++i) {
        int ignored = 0;
        Lapack<T>::geqrf(&m, &n, matrices[i], &lda, scalars[i], work.data(), &room, &ignored);
      }
    });
  });
}

// As in cuBLAS, of overdetermined systems only.
template <typename T>
cublasStatus_t GelsBatched(cublasHandle_t handle, cublasOperation_t op, int m, int n, int columns,
                           T* const* a, int lda, T* const* c, int ldc, int* info, int* device_infos,
                           int count) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (info == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    *info = FirstRefused({true, IsValid(op), m >= 0, n >= 0, columns >= 0, true, IsLeading(lda, m),
                          true, IsLeading(ldc, m), true, true, count >= 0});
    if (*info != 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (op != CUBLAS_OP_N || m < n) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (n == 0 || columns == 0 || count == 0) return CUBLAS_STATUS_SUCCESS;
    Table<T> matrices;
    Table<T> sides;
    if (!ReadTable(context, a, count, MatrixOf<T>(m, n, lda), matrices) ||
        !ReadTable(context, c, count, MatrixOf<T>(m, columns, ldc), sides)) {
      return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    return Enqueue(
        context, {device_infos == nullptr ? AccessExtent{} : WrittenVector(device_infos, count, 1)},
        [=] {
          const int room = Workspace(std::max(n, columns), n + 1);
          std::vector<T> work(static_cast<std::size_t>(room));
          for (std::size_t i = 0; i < matrices.size(); ++i) {
            int failed = 0;
            Lapack<T>::gels("N", &m, &n, &columns, matrices[i], &lda, sides[i], &ldc, work.data(),
                            &room, &failed, 1);
            if (device_infos != nullptr) device_infos[i] = failed;
          }
        });
  });
}

}  // namespace

extern "C" {

#include "emulator/blas/batched_entries.inc"

}  // extern "C"
