#pragma once

#include "emulator/ptx/module.h"

namespace torpor::ptx {

// Sets Instruction::ends_threads of all calls to functions that contain `exit`, or such calls. A
// call through a pointer may reach any function.
void MarkCallsThatEndThreads(Module& module);

}  // namespace torpor::ptx
