#include "tests/conformance/lane_types.h"

#include <cmath>
#include <limits>

namespace torpor::conformance {
namespace {

// A binary format of 16 bits: sign, exponent, fraction.
struct Format {
  int fraction_bits;
  int bias;
  int largest_exponent;  // biased, of finite numbers
};

constexpr Format kHalf = {10, 15, 30};
constexpr Format kBfloat = {7, 127, 254};

double Decode(std::uint16_t bits, const Format& format) {
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  const int exponent = (bits & 0x7fff) >> format.fraction_bits;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent > format.largest_exponent)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  const int hidden = exponent == 0 ? 0 : 1 << format.fraction_bits;
  const int scale = (exponent == 0 ? 1 : exponent) - format.bias - format.fraction_bits;
  return sign * std::ldexp(fraction + hidden, scale);
}

// The nearest integer, ties to even, of what is at least zero and far below 2^62.
std::int64_t Nearest(Wide value) {
  const auto floor = static_cast<std::int64_t>(value);
  const Wide rest = value - static_cast<Wide>(floor);
  const bool up = rest > 0.5 || (rest == 0.5 && (floor & 1) != 0);
  return floor + (up ? 1 : 0);
}

// Multiplies by powers of two, which is exact.
Wide Scale(Wide value, int exponent) {
  for (; exponent > 0; --exponent) value *= 2;
  for (; exponent < 0; ++exponent) value /= 2;
  return value;
}

std::uint16_t Encode(Wide value, const Format& format) {
  const int infinity = (format.largest_exponent + 1) << format.fraction_bits;
  const auto approximation = static_cast<double>(value);
  if (std::isnan(approximation)) return 0x7fff;
  const int sign = std::signbit(approximation) ? 0x8000 : 0;
  if (std::isinf(approximation)) return static_cast<std::uint16_t>(sign | infinity);
  Wide magnitude = sign != 0 ? -value : value;
  // The exponent of the unit in the last place: that of subnormal numbers at least.
  int unit = 1 - format.bias - format.fraction_bits;
  if (approximation != 0) unit = std::max(unit, std::ilogb(approximation) - format.fraction_bits);
  std::int64_t units = Nearest(Scale(magnitude, -unit));
  if (units >> (format.fraction_bits + 1) != 0) {
    units >>= 1;  // rounded up to a power of two: the bit that goes is zero
    ++unit;
  }
  const bool is_normal = units >> format.fraction_bits != 0;
  const int exponent = is_normal ? unit + format.bias + format.fraction_bits : 0;
  if (exponent > format.largest_exponent) return static_cast<std::uint16_t>(sign | infinity);
  const auto fraction = static_cast<int>(units & ((1 << format.fraction_bits) - 1));
  return static_cast<std::uint16_t>(sign | exponent << format.fraction_bits | fraction);
}

}  // namespace

double ToDouble(Half value) { return Decode(value.bits, kHalf); }
double ToDouble(Bfloat value) { return Decode(value.bits, kBfloat); }
Half ToHalf(Wide value) { return {Encode(value, kHalf)}; }
Bfloat ToBfloat(Wide value) { return {Encode(value, kBfloat)}; }

}  // namespace torpor::conformance
