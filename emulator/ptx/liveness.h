#pragma once

#include <vector>

#include "emulator/ptx/bit_set.h"
#include "emulator/ptx/control_flow.h"

namespace torpor::ptx {

// The registers that may be read at or after the start of each block before they are written.
std::vector<BitSet> LiveAtEntry(const Function& function, const ControlFlow& flow);

}  // namespace torpor::ptx
