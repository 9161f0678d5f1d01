#include "tests/conformance/ptx_case.h"

#include <cmath>
#include <limits>

namespace torpor::conformance {
namespace {

template <typename T>
T DrawInteger(std::mt19937_64& random) {
  using Limits = std::numeric_limits<T>;
  static constexpr T kAwkward[] = {0,  1, static_cast<T>(-1), Limits::min(), Limits::max(), 2,
                                   31, 32};
  const std::uint64_t bits = random();
  if (random() % 8 == 0) return kAwkward[bits % std::size(kAwkward)];
  return static_cast<T>(bits >> random() % 64);
}

// Any bits, numbers near each other, and the awkward ones.
template <typename T, typename Bits>
T DrawReal(std::mt19937_64& random) {
  using Limits = std::numeric_limits<T>;
  static const T kAwkward[] = {T{0},
                               -T{0},
                               T{1},
                               T{-1},
                               T{0.5},
                               T{1.5},
                               T{2.5},
                               Limits::max(),
                               -Limits::max(),
                               Limits::min(),
                               Limits::denorm_min(),
                               -Limits::denorm_min(),
                               Limits::infinity(),
                               -Limits::infinity(),
                               Limits::quiet_NaN()};
  switch (random() % 8) {
    case 0:
      return kAwkward[random() % std::size(kAwkward)];
    case 1:
    case 2:
      return std::bit_cast<T>(static_cast<Bits>(random()));
    case 3:
      return static_cast<T>(static_cast<std::int64_t>(random() % 2001) - 1000) / 2;
    default:
      return std::uniform_real_distribution<T>(-8, 8)(random);
  }
}

}  // namespace

template <>
std::uint16_t Draw(std::mt19937_64& random) {
  return DrawInteger<std::uint16_t>(random);
}
template <>
std::int16_t Draw(std::mt19937_64& random) {
  return DrawInteger<std::int16_t>(random);
}
template <>
std::uint32_t Draw(std::mt19937_64& random) {
  return DrawInteger<std::uint32_t>(random);
}
template <>
std::int32_t Draw(std::mt19937_64& random) {
  return DrawInteger<std::int32_t>(random);
}
template <>
std::uint64_t Draw(std::mt19937_64& random) {
  return DrawInteger<std::uint64_t>(random);
}
template <>
std::int64_t Draw(std::mt19937_64& random) {
  return DrawInteger<std::int64_t>(random);
}
template <>
float Draw(std::mt19937_64& random) {
  return DrawReal<float, std::uint32_t>(random);
}
template <>
double Draw(std::mt19937_64& random) {
  return DrawReal<double, std::uint64_t>(random);
}

template <>
Half Draw(std::mt19937_64& random) {
  if (random() % 2 == 0) return {static_cast<std::uint16_t>(random())};
  return ToHalf(std::uniform_real_distribution<double>(-8, 8)(random));
}
template <>
Bfloat Draw(std::mt19937_64& random) {
  if (random() % 2 == 0) return {static_cast<std::uint16_t>(random())};
  return ToBfloat(std::uniform_real_distribution<double>(-8, 8)(random));
}
template <>
Half2 Draw(std::mt19937_64& random) {
  return {Draw<Half>(random), Draw<Half>(random)};
}
template <>
Bfloat2 Draw(std::mt19937_64& random) {
  return {Draw<Bfloat>(random), Draw<Bfloat>(random)};
}

PtxCase Within(Tolerance tolerance, PtxCase made) {
  made.tolerance = tolerance;
  return made;
}

PtxCase Drawn(std::function<void(std::mt19937_64&, Operands&)> draw, PtxCase made) {
  made.draw = std::move(draw);
  return made;
}

PtxCase Declaring(std::string declarations, PtxCase made) {
  made.declarations = std::move(declarations);
  return made;
}

}  // namespace torpor::conformance
