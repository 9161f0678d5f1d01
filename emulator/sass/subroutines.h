#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "emulator/sass/cubin.h"
#include "emulator/sass/decode.h"

namespace torpor::sass {

// Where code goes that does not fall through, which counts from the instruction behind it.
std::uint64_t BranchTarget(const Instruction& instruction);

// Local subroutines are called with an address to return to in registers. All of a text is one PTX
// function, in which a return is a jump to one of the places behind the calls that may have led to
// it.
struct Subroutines {
  std::map<std::uint64_t, std::vector<std::uint64_t>> returns;  // a RET -> behind calls, ascending
};

Subroutines FindSubroutines(const Text& text, const Kernel& kernel);

}  // namespace torpor::sass
