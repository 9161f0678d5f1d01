#pragma once

#include <cuda.h>

#include "emulator/exec/program.h"

namespace torpor::emulator {

// Translates an error of emulator/exec to the driver's answer.
CUresult ToCuResult(ExecError error);

}  // namespace torpor::emulator
