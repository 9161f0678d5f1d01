#include "emulator/blas/half.h"

#include <bit>
#include <cmath>

namespace torpor::emulator {

// Compiled twice and chosen at load time: the conversions are one instruction with F16C and a
// library call an element without.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define TORPOR_F16C __attribute__((target_clones("arch=haswell", "default")))
#else
#define TORPOR_F16C
#endif

TORPOR_F16C void HalfToFloat(const std::uint16_t* from, float* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = static_cast<float>(std::bit_cast<_Float16>(from[i]));
  }
}

TORPOR_F16C void FloatToHalf(const float* from, std::uint16_t* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = std::bit_cast<std::uint16_t>(static_cast<_Float16>(from[i]));
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
