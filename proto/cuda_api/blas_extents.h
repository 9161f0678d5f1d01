#pragma once

#include <cstdint>
#include <limits>

// The memory that a cuBLAS call reaches, derived from the arguments, and checks of the arguments.
// The client checks before sending a call; the server checks again, as the bytes are untrusted.
// Enumerations are therefore plain numbers here (as in cublas_api.h, library_types.h).
namespace torpor::wire {

constexpr bool IsOperation(std::int32_t value) { return value >= 0 && value <= 2; }
constexpr bool IsFillMode(std::int32_t value) { return value == 0 || value == 1; }
constexpr bool IsSide(std::int32_t value) { return value == 0 || value == 1; }
constexpr bool IsDiagonal(std::int32_t value) { return value == 0 || value == 1; }
constexpr bool IsGemmAlgorithm(std::int32_t value) {
  return (value >= -1 && value <= 23) || (value >= 99 && value <= 115) || value == 999;
}

// Bytes of an element of a cudaDataType; 0 for an unknown type or a fraction of a byte.
constexpr std::uint64_t DataTypeBytes(std::int32_t type) {
  switch (type) {
    case 3:   // CUDA_R_8I
    case 8:   // CUDA_R_8U
    case 28:  // CUDA_R_8F_E4M3
    case 29:  // CUDA_R_8F_E5M2
      return 1;
    case 2:   // CUDA_R_16F
    case 14:  // CUDA_R_16BF
      return 2;
    case 0:   // CUDA_R_32F
    case 10:  // CUDA_R_32I
      return 4;
    case 1:  // CUDA_R_64F
    case 4:  // CUDA_C_32F
      return 8;
    case 5:  // CUDA_C_64F
      return 16;
    default:
      return 0;
  }
}
constexpr bool IsDataType(std::int32_t type) { return DataTypeBytes(type) > 0; }

constexpr bool IsComputeType(std::int32_t type) {
  return type == 64 || type == 65 || (type >= 68 && type <= 75) || (type >= 77 && type <= 79);
}

// Bytes of alpha and beta of the Ex functions, of the compute type, complex if C is complex.
constexpr std::uint64_t ScalarBytes(std::int32_t compute_type, std::int32_t c_type) {
  const bool complex = c_type == 4 || c_type == 5;
  switch (compute_type) {
    case 64:
    case 65:
      return 2;
    case 70:
    case 71:
    case 79:
      return complex ? 16 : 8;
    default:
      return complex ? 8 : 4;
  }
}

// Returns `plain` for a matrix used as stored, else `transposed`.
constexpr std::int32_t Oriented(std::int32_t operation, std::int32_t plain,
                                std::int32_t transposed) {
  return operation == 0 ? plain : transposed;
}
constexpr std::int32_t Sided(std::int32_t side, std::int32_t left, std::int32_t right) {
  return side == 0 ? left : right;
}

// Rows of a band matrix with these numbers of diagonals below and above the main one; negative if
// there is no such matrix.
constexpr std::int32_t BandRows(std::int32_t below, std::int32_t above) {
  const std::int64_t rows = std::int64_t{below} + above + 1;
  return below < 0 || above < 0 || rows > std::numeric_limits<std::int32_t>::max()
             ? -1
             : static_cast<std::int32_t>(rows);
}
constexpr std::int32_t AtLeastOne(std::int32_t value) { return value < 1 ? 1 : value; }
// The magnitude of an increment.
constexpr std::int32_t Magnitude(std::int32_t value) {
  if (value == std::numeric_limits<std::int32_t>::min()) {
    return std::numeric_limits<std::int32_t>::max();
  }
  return value < 0 ? -value : value;
}

// A product or sum that overflows counts as endless: no session owns as much memory.
inline constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();

constexpr std::uint64_t Times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kEndless : product;
}
constexpr std::uint64_t Plus(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kEndless : sum;
}

constexpr bool MatrixIsValid(std::int32_t rows, std::int32_t columns, std::int32_t leading) {
  return rows >= 0 && columns >= 0 && leading >= 1 && leading >= rows;
}
constexpr bool BatchIsValid(std::int64_t stride, std::int32_t count) {
  return stride >= 0 && count >= 0;
}

// The arguments must be valid in the sense above.
constexpr std::uint64_t MatrixBytes(std::uint64_t element_bytes, std::int32_t rows,
                                    std::int32_t columns, std::int32_t leading) {
  if (rows <= 0 || columns <= 0) return 0;
  const auto elements =
      static_cast<std::uint64_t>(leading) * static_cast<std::uint64_t>(columns - 1) +
      static_cast<std::uint64_t>(rows);
  return Times(elements, element_bytes);
}
constexpr std::uint64_t BatchBytes(std::uint64_t element_bytes, std::int32_t rows,
                                   std::int32_t columns, std::int32_t leading, std::int64_t stride,
                                   std::int32_t count) {
  const std::uint64_t one = MatrixBytes(element_bytes, rows, columns, leading);
  if (one == 0 || count <= 0) return 0;
  const std::uint64_t apart = Times(static_cast<std::uint64_t>(stride), element_bytes);
  return Plus(Times(apart, static_cast<std::uint64_t>(count - 1)), one);
}

// Any increment is allowed: cuBLAS reads n elements |increment| apart, and none where n <= 0.
constexpr std::uint64_t VectorBytes(std::uint64_t element_bytes, std::int32_t n,
                                    std::int32_t increment) {
  if (n <= 0) return 0;
  const std::int64_t step = increment < 0 ? -std::int64_t{increment} : increment;
  const auto elements = static_cast<std::uint64_t>(n - 1) * static_cast<std::uint64_t>(step) + 1;
  return Times(elements, element_bytes);
}

// Elements of one half of an n x n matrix, stored column by column.
constexpr std::uint64_t PackedBytes(std::uint64_t element_bytes, std::int32_t n) {
  if (n <= 0) return 0;
  const auto order = static_cast<std::uint64_t>(n);
  return Times(order * (order + 1) / 2, element_bytes);
}

}  // namespace torpor::wire
