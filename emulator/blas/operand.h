#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <vector>

#include "emulator/blas/arguments.h"
#include "emulator/blas/element_type.h"
#include "emulator/library/half.h"

// Matrices of any type as operands of a product that is computed in type T.
namespace torpor::emulator {

// A column-major matrix of type T: the stored matrix itself, or a dense copy if the stored type
// differs. The stored matrix must outlive the operand.
template <typename T>
class MatrixOperand {
 public:
  // If `is_read`, a copy starts with the elements of the matrix; otherwise with zeros.
  MatrixOperand(const void* stored, cudaDataType type, std::int64_t rows, std::int64_t columns,
                std::int64_t leading, bool is_read)
      : stored_(stored), type_(type), rows_(rows), columns_(columns), leading_(leading) {
    if (type == kDataTypeOf<T>) return;
    copy_.resize(static_cast<std::size_t>(rows * columns));
    for (std::int64_t column = 0; is_read && column < columns; ++column) Widen(column);
  }

  // OpenBLAS demands an address even for an empty matrix.
  const T* data() const {
    return type_ == kDataTypeOf<T> ? static_cast<const T*>(stored_) : copy_.data();
  }
  T* mutable_data() { return const_cast<T*>(data()); }
  int leading() const {
    const std::int64_t leading = type_ == kDataTypeOf<T> ? leading_ : rows_;
    return static_cast<int>(std::max<std::int64_t>(leading, 1));
  }

  // Stores the copy's elements in the matrix, rounded.
  void WriteBack() {
    if (type_ == kDataTypeOf<T>) return;
    for (std::int64_t column = 0; column < columns_; ++column) Narrow(column);
  }

 private:
  void Widen(std::int64_t column) {
    T* const to = copy_.data() + column * rows_;
    if constexpr (std::is_same_v<T, float>) {
      const auto* const from = static_cast<const std::uint16_t*>(stored_) + column * leading_;
      const auto count = static_cast<std::size_t>(rows_);
      if (type_ == CUDA_R_16F) return HalfToFloat(from, to, count);
      if (type_ == CUDA_R_16BF) return Bfloat16ToFloat(from, to, count);
    }
    if constexpr (!kIsComplex<T>) {
      for (std::int64_t row = 0; row < rows_; ++row) {
        to[row] = static_cast<T>(LoadElement(stored_, column * leading_ + row, type_).real());
      }
    }
  }
  void Narrow(std::int64_t column) {
    const T* const from = copy_.data() + column * rows_;
    auto* const target = const_cast<void*>(stored_);
    if constexpr (std::is_same_v<T, float>) {
      auto* const to = static_cast<std::uint16_t*>(target) + column * leading_;
      const auto count = static_cast<std::size_t>(rows_);
      if (type_ == CUDA_R_16F) return FloatToHalf(from, to, count);
      if (type_ == CUDA_R_16BF) return FloatToBfloat16(from, to, count);
    }
    for (std::int64_t row = 0; row < rows_; ++row) {
      StoreElement(target, column * leading_ + row, type_, from[row]);
    }
  }

  const void* const stored_;
  const cudaDataType type_;
  const std::int64_t rows_;
  const std::int64_t columns_;
  const std::int64_t leading_;
  std::vector<T> copy_;
};

template <typename T>
T To(std::complex<double> value) {
  if constexpr (kIsComplex<T>) {
    return T(value);
  } else {
    return static_cast<T>(value.real());
  }
}

}  // namespace torpor::emulator
