#pragma once

#include <vector>

#include "emulator/ptx/bit_set.h"
#include "emulator/ptx/control_flow.h"

namespace torpor::ptx {

// Returns, for each block, the registers that code from the block's start on may read before
// writing them.
std::vector<BitSet> LiveAtEntry(const Function& function, const ControlFlow& flow);

}  // namespace torpor::ptx
