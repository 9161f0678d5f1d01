#pragma once

#include <cblas.h>
#include <cublas_v2.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "emulator/blas/handle.h"

// Arguments of cuBLAS's functions as C++ and OpenBLAS types, their checks, and their extents.
namespace torpor::emulator {

// The C++ type for a structure of cuBLAS: std::complex for complex numbers, else T.
template <typename T>
struct CppType {
  using type = T;
};
template <>
struct CppType<cuComplex> {
  using type = std::complex<float>;
};
template <>
struct CppType<cuDoubleComplex> {
  using type = std::complex<double>;
};
template <typename T>
struct CppType<const T> {
  using type = const typename CppType<T>::type;
};
template <typename T>
struct CppType<T*> {
  using type = typename CppType<T>::type*;
};
template <typename T>
struct CppType<T* const> {
  using type = typename CppType<T>::type* const;
};

// Converts an argument of a cuBLAS function to the C++ type.
template <typename T>
auto Typed(T* pointer) {
  return reinterpret_cast<typename CppType<T>::type*>(pointer);
}
template <typename T>
requires(!std::is_pointer_v<T>) T Typed(T value) { return value; }
// A size of a `_64` entry, after FitsBlas.
inline int Typed(std::int64_t value) { return static_cast<int>(value); }

// The type of the real part of a T.
template <typename T>
struct RealType {
  using type = T;
};
template <typename T>
struct RealType<std::complex<T>> {
  using type = T;
};
template <typename T>
using Real = typename RealType<T>::type;
template <typename T>
inline constexpr bool kIsComplex = !std::is_same_v<T, Real<T>>;

// Conjugates complex numbers; returns real numbers unchanged.
template <typename T>
T Conjugate(T value) {
  if constexpr (kIsComplex<T>) {
    return std::conj(value);
  } else {
    return value;
  }
}

// OpenBLAS takes real scalars by value and complex ones by address.
template <typename T>
auto Pass(const T& value) {
  if constexpr (kIsComplex<T>) {
    return static_cast<const void*>(&value);
  } else {
    return value;
  }
}

// Whether an enumeration argument has a documented value; functions answer
// CUBLAS_STATUS_INVALID_VALUE otherwise.
inline bool IsValid(cublasOperation_t op) { return op >= CUBLAS_OP_N && op <= CUBLAS_OP_C; }
inline bool IsValid(cublasFillMode_t fill) {
  return fill == CUBLAS_FILL_MODE_LOWER || fill == CUBLAS_FILL_MODE_UPPER;
}
inline bool IsValid(cublasDiagType_t diagonal) {
  return diagonal == CUBLAS_DIAG_NON_UNIT || diagonal == CUBLAS_DIAG_UNIT;
}
inline bool IsValid(cublasSideMode_t side) {
  return side == CUBLAS_SIDE_LEFT || side == CUBLAS_SIDE_RIGHT;
}
template <typename... Modes>
bool AreValid(Modes... modes) {
  return (IsValid(modes) && ...);
}
// Whether `leading` is a legal leading dimension of a matrix with `rows` rows.
inline bool IsLeading(int leading, int rows) { return leading >= std::max(rows, 1); }

// Translate enumerations of cuBLAS to CBLAS.
inline CBLAS_TRANSPOSE ToCblas(cublasOperation_t op) {
  if (op == CUBLAS_OP_N) return CblasNoTrans;
  return op == CUBLAS_OP_T ? CblasTrans : CblasConjTrans;
}
inline CBLAS_UPLO ToCblas(cublasFillMode_t fill) {
  return fill == CUBLAS_FILL_MODE_LOWER ? CblasLower : CblasUpper;
}
inline CBLAS_DIAG ToCblas(cublasDiagType_t diagonal) {
  return diagonal == CUBLAS_DIAG_UNIT ? CblasUnit : CblasNonUnit;
}
inline CBLAS_SIDE ToCblas(cublasSideMode_t side) {
  return side == CUBLAS_SIDE_LEFT ? CblasLeft : CblasRight;
}

// Extents of vectors and column-major matrices of T, with increments and leading dimensions in
// elements.
template <typename T>
AccessExtent ReadVector(const T* x, int n, int increment) {
  return VectorExtent(x, n, increment, sizeof(T), false);
}
template <typename T>
AccessExtent WrittenVector(T* x, int n, int increment) {
  return VectorExtent(x, n, increment, sizeof(T), true);
}
template <typename T>
AccessExtent ReadMatrix(const T* a, int rows, int columns, int leading) {
  return MatrixExtent(a, rows, columns, leading, sizeof(T), false);
}
template <typename T>
AccessExtent WrittenMatrix(T* a, int rows, int columns, int leading) {
  return MatrixExtent(a, rows, columns, leading, sizeof(T), true);
}

// The offset of element `i` in a vector of `n`: with a negative increment BLAS stores the last
// element first.
inline std::int64_t Place(int i, int n, int increment) {
  return std::int64_t{increment} * (increment < 0 ? i - (n - 1) : i);
}

}  // namespace torpor::emulator
