#include "emulator/library/half.h"

#include <immintrin.h>

#include <bit>
#include <cmath>

namespace torpor::emulator {
namespace {

// Exact: every half is a float.
float ToFloat(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half} >> 15 << 31;
  const std::uint32_t exponent = half >> 10 & 0x1f;
  const std::uint32_t fraction = half & 0x3ff;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide_exponent = exponent == 0x1f ? 0xff : exponent + 112;
  return std::bit_cast<float>(sign | wide_exponent << 23 | fraction << 13);
}

// Rounds to nearest even; numbers of at least 65520 become infinite.
std::uint16_t ToHalf(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00);
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0F)
    return static_cast<std::uint16_t>(sign | 0x7c00);  // rounds to infinity
  if (magnitude <
      0x1p-14F) {  // subnormal: in units of 2^-24; rounding up may reach the smallest normal
    return static_cast<std::uint16_t>(
        sign | static_cast<std::uint32_t>(std::nearbyint(magnitude * 0x1p24F)));
  }
  const std::uint32_t rebased = (bits & 0x7fff'ffff) - (112U << 23);
  return static_cast<std::uint16_t>(sign | (rebased + 0xfff + (rebased >> 13 & 1)) >> 13);
}

// Converts eight numbers at a time with F16C and returns how many; the caller converts the rest.
__attribute__((target("avx,f16c"))) std::size_t WidenEights(const std::uint16_t* from, float* to,
                                                            std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(to + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
  return i;
}

__attribute__((target("avx,f16c"))) std::size_t NarrowEights(const float* from, std::uint16_t* to,
                                                             std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}

// Whether the CPU converts halves itself.
bool HasF16c() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;  // every such CPU has F16C too
  return has;
}

}  // namespace

void HalfToFloat(const std::uint16_t* from, float* to, std::size_t count) {
  for (std::size_t i = HasF16c() ? WidenEights(from, to, count) : 0; i < count; ++i) {
    to[i] = ToFloat(from[i]);
  }
}

void FloatToHalf(const float* from, std::uint16_t* to, std::size_t count) {
  for (std::size_t i = HasF16c() ? NarrowEights(from, to, count) : 0; i < count; ++i) {
    to[i] = ToHalf(from[i]);
  }
}

void Bfloat16ToFloat(const std::uint16_t* from, float* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = std::bit_cast<float>(std::uint32_t{from[i]} << 16);
  }
}

void FloatToBfloat16(const float* from, std::uint16_t* to, std::size_t count) {
  constexpr std::uint32_t kQuietNan = 0x7fff;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(from[i]);
    const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    to[i] = static_cast<std::uint16_t>(std::isnan(from[i]) ? kQuietNan : rounded);
  }
}

}  // namespace torpor::emulator
