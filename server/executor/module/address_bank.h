#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace torpor::executor {

// The bank of constants in which a linked cubin has the addresses of its variables, a double word
// each, whether code uses them or not.
inline constexpr unsigned kAddressBank = 4;

// Whether MayReadAddress knows the machine code of sm_`architecture`: that of Volta to Hopper.
constexpr bool IsKnownMachineCode(unsigned architecture) {
  return architecture >= 70 && architecture <= 90;
}

// Whether machine code may read one of the double words of that bank that begin at `places`
// (ascending). What cannot be told may; functions of the system are called by addresses of the same
// bank, by way of a register whose value must be plain. The bytes may be anything.
bool MayReadAddress(std::span<const std::byte> code, std::span<const std::uint64_t> places);

}  // namespace torpor::executor
