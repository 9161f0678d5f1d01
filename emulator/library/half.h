#pragma once

#include <cstddef>
#include <cstdint>

namespace torpor::emulator {

// Convert `count` numbers between IEEE half precision or bfloat16 and float, rounding to nearest
// even.
void HalfToFloat(const std::uint16_t* from, float* to, std::size_t count);
void FloatToHalf(const float* from, std::uint16_t* to, std::size_t count);
void Bfloat16ToFloat(const std::uint16_t* from, float* to, std::size_t count);
void FloatToBfloat16(const float* from, std::uint16_t* to, std::size_t count);

}  // namespace torpor::emulator
