#pragma once

#include "emulator/exec/codegen/builder/operand_builder.h"

namespace torpor::emulator {

// Whether `type` is tf32 or a pair of 8-bit floats.
bool IsMatrixFloat(ptx::Type type);

}  // namespace torpor::emulator
