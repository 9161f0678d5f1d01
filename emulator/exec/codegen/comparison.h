#pragma once

#include "emulator/exec/codegen/builder/operand_builder.h"

namespace torpor::emulator {

// The instruction's comparison (.eq, .ltu, ...) of two values of `type`: i1, of the values' shape.
// An error if the type has no such comparison.
llvm::Value* CompareValues(OperandBuilder& to, const ptx::Instruction& instruction, ptx::Type type,
                           llvm::Value* a, llvm::Value* b);

}  // namespace torpor::emulator
