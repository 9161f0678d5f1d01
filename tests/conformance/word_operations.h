#pragma once

#include <cstdint>

// What atomic operations and reductions over a warp make of two words.
namespace torpor::conformance {

inline std::uint32_t Sum(std::uint32_t a, std::uint32_t b) { return a + b; }
inline std::uint32_t And(std::uint32_t a, std::uint32_t b) { return a & b; }
inline std::uint32_t Or(std::uint32_t a, std::uint32_t b) { return a | b; }
inline std::uint32_t Xor(std::uint32_t a, std::uint32_t b) { return a ^ b; }
// Of integers: those of floating-point numbers have rules of their own for NaN and zeros.
template <typename T>
T Least(T a, T b) {
  return a < b ? a : b;
}
template <typename T>
T Greatest(T a, T b) {
  return a > b ? a : b;
}

}  // namespace torpor::conformance
