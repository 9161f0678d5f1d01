#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace torpor::sass {

// The constant bank in which a linked cubin keeps the addresses of its variables, 8 bytes each,
// used or not.
inline constexpr unsigned kAddressBank = 4;

// Whether MayReadAddress understands the machine code of sm_`architecture`: Volta to Hopper.
constexpr bool IsKnownMachineCode(unsigned architecture) {
  return architecture >= 70 && architecture <= 90;
}

// Whether machine code may read one of the 8-byte addresses of kAddressBank at the offsets `places`
// (ascending). Returns true in doubt, also for bytes that are not machine code. The same bank holds
// the addresses of system functions; a call loads them through an index register, whose value must
// come from a plain MOV nearby.
bool MayReadAddress(std::span<const std::byte> code, std::span<const std::uint64_t> places);

}  // namespace torpor::sass
