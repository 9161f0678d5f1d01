#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "emulator/sass/cubin.h"
#include "nvidia/machine_code/instruction.h"

namespace torpor::sass {

// Whether a CALL.REL takes its target from a register.
bool CallsByRegister(const MachineInstruction& instruction);

// Returns the offsets of the functions that a kernel may call by address: all of its text except
// itself.
std::vector<std::uint64_t> FunctionsBehind(const Text& text, const CubinKernel& kernel);

// Local subroutines receive their return address in registers. A whole text becomes one PTX
// function, in which a return is a jump to one of the places after the calls that may have led
// there.
struct Subroutines {
  std::map<std::uint64_t, std::vector<std::uint64_t>> returns;  // a RET -> behind calls, ascending
};

Subroutines FindSubroutines(const Text& text, const CubinKernel& kernel);

}  // namespace torpor::sass
