#pragma once

#include <cstddef>
#include <cstdint>

namespace torpor::emulator {

// IEEE half precision and bfloat16 to and from float, rounded to nearest even.
void HalfToFloat(const std::uint16_t* from, float* to, std::size_t count);
void FloatToHalf(const float* from, std::uint16_t* to, std::size_t count);
void Bfloat16ToFloat(const std::uint16_t* from, float* to, std::size_t count);
void FloatToBfloat16(const float* from, std::uint16_t* to, std::size_t count);

}  // namespace torpor::emulator
