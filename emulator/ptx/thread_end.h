#pragma once

#include "emulator/ptx/module.h"

namespace torpor::ptx {

// Sets Instruction::ends_threads of all calls: of those of functions that contain `exit`, or such
// calls themselves. Who calls a pointer may call any function.
void MarkCallsThatEndThreads(Module& module);

}  // namespace torpor::ptx
