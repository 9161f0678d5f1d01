#pragma once

#include <random>
#include <type_traits>

#include "tests/emulator/blas/blas_fixture.h"
#include "tests/emulator/blas/dense_reference.h"

namespace torpor::emulator {

// The function for elements of type T.
template <typename T, typename S, typename D, typename C, typename Z>
constexpr auto ByType([[maybe_unused]] S s, [[maybe_unused]] D d, [[maybe_unused]] C c,
                      [[maybe_unused]] Z z) {
  if constexpr (std::is_same_v<T, float>) {
    return s;
  } else if constexpr (std::is_same_v<T, double>) {
    return d;
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    return c;
  } else {
    return z;
  }
}

template <typename T>
inline constexpr bool kIsComplex =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
template <typename T>
using Real = decltype(std::abs(T()));

// cuBLAS's structures for complex numbers.
template <typename T>
auto P(T* pointer) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, std::complex<float>>) {
    using Given = std::conditional_t<std::is_const_v<T>, const cuComplex, cuComplex>;
    return reinterpret_cast<Given*>(pointer);
  } else if constexpr (std::is_same_v<Plain, std::complex<double>>) {
    using Given = std::conditional_t<std::is_const_v<T>, const cuDoubleComplex, cuDoubleComplex>;
    return reinterpret_cast<Given*>(pointer);
  } else {
    return pointer;
  }
}

// Tests for each of cuBLAS's four element types.
template <typename T>
class TypedBlasTest : public BlasTest {
 protected:
  using Values = std::vector<T>;

  // Numbers between -1 and 1; every call gives others.
  Values Random(int count) {
    std::uniform_real_distribution<Real<T>> distribution(-1, 1);
    Values values(static_cast<std::size_t>(count));
    for (T& value : values) {
      if constexpr (kIsComplex<T>) {
        value = T(distribution(engine_), distribution(engine_));
      } else {
        value = distribution(engine_);
      }
    }
    return values;
  }
  // Adds to the diagonal, so that systems of equations are well conditioned.
  static Values Dominant(Values matrix, std::size_t n, std::size_t leading) {
    for (std::size_t i = 0; i < n; ++i) matrix[i + i * leading] += T(8);
    return matrix;
  }

  // Sums of some 30 products of numbers up to 8; what is relative to larger ones is scaled.
  static constexpr double kTolerance = std::is_same_v<Real<T>, float> ? 2e-4 : 1e-12;

  static void ExpectNear(const Dense& got, const Dense& want, const char* what,
                         bool only_half = false, cublasFillMode_t fill = CUBLAS_FILL_MODE_LOWER) {
    for (int column = 0; column < want.columns(); ++column) {
      for (int row = 0; row < want.rows(); ++row) {
        if (only_half && !IsStored(fill, row, column)) continue;
        const double error = std::abs(got(row, column) - want(row, column));
        ASSERT_LE(error, kTolerance * (1 + std::abs(want(row, column))))
            << what << " at " << row << ", " << column;
      }
    }
  }

  // A factor in host memory, as cuBLAS takes it and as the reference does.
  struct Factor {
    T value;
    auto get() const { return P(&value); }
    operator Wide() const { return Wide(value); }  // NOLINT(google-explicit-constructor)
  };
  static Factor Alpha() {
    if constexpr (kIsComplex<T>) {
      return {T(1.5F, -0.5F)};
    } else {
      return {T(1.5F)};
    }
  }
  static Factor Beta() {
    if constexpr (kIsComplex<T>) {
      return {T(-0.5F, 0.25F)};
    } else {
      return {T(-0.5F)};
    }
  }

 private:
  std::mt19937 engine_{7};
};

using ElementTypes = testing::Types<float, double, std::complex<float>, std::complex<double>>;

inline constexpr cublasOperation_t kOps[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};
inline constexpr cublasFillMode_t kFills[] = {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER};
inline constexpr cublasDiagType_t kDiagonals[] = {CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT};
inline constexpr cublasSideMode_t kSides[] = {CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT};

}  // namespace torpor::emulator
