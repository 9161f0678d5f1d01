#pragma once

#include <cstdint>

namespace torpor::emulator {

// RuntimeCalls::rounded.
void RoundedMath(std::uint64_t* out, const std::uint64_t* a, const std::uint64_t* b,
                 const std::uint64_t* c, std::uint32_t operation, std::uint32_t rounding,
                 std::uint32_t bits);

}  // namespace torpor::emulator
