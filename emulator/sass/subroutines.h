#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "emulator/sass/cubin.h"
#include "nvidia/machine_code/instruction.h"

namespace torpor::sass {

// Whether a CALL.REL goes where a register says.
bool CallsByRegister(const Instruction& instruction);

// The functions that a kernel may call by address: those of its text but itself.
std::vector<std::uint64_t> FunctionsBehind(const Text& text, const Kernel& kernel);

// Local subroutines are called with an address to return to in registers. All of a text is one PTX
// function, in which a return is a jump to one of the places behind the calls that may have led to
// it.
struct Subroutines {
  std::map<std::uint64_t, std::vector<std::uint64_t>> returns;  // a RET -> behind calls, ascending
};

Subroutines FindSubroutines(const Text& text, const Kernel& kernel);

}  // namespace torpor::sass
