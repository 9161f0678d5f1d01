#pragma once

#include "emulator/ptx/bit_set.h"
#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/module.h"

namespace torpor::ptx {

// Finds the instructions, by index, that load one of several parts of a block's input from global
// memory: outside of loops, from one pointer among the kernel's parameters, but at different
// offsets.
BitSet FindTileLoads(const Function& function, const ControlFlow& flow);

}  // namespace torpor::ptx
