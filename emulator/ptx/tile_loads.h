#pragma once

#include "emulator/ptx/bit_set.h"
#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/module.h"

namespace torpor::ptx {

// The instructions, by index, that load from global memory one of several parts of what a block
// reads: outside of loops, from one pointer among the kernel's parameters but at different places.
BitSet FindTileLoads(const Function& function, const ControlFlow& flow);

}  // namespace torpor::ptx
