#pragma once

#include <vector>

#include "emulator/exec/codegen/builder/operand_builder.h"

// Floating-point values: modifiers of PTX instructions, scalar or of 32 lanes.
namespace torpor::emulator {

// .rz, .rm and .rp; without a modifier to nearest even.
Rounding RoundingOf(const ptx::Instruction& instruction);
// Whether the instruction rounds otherwise than to nearest even.
bool IsRounded(const ptx::Instruction& instruction);
// `operation` with the instruction's rounding, by the CPU or else lane by lane by the runtime.
llvm::Value* Rounded(OperandBuilder& to, const ptx::Instruction& instruction,
                     RoundedOperation operation, const std::vector<llvm::Value*>& inputs,
                     ptx::Type result);

// Subnormal f32 to zero if .ftz; other values and types stay.
llvm::Value* Flush(LaneBuilder& code, const ptx::Instruction& instruction, llvm::Value* value);
// To [0, 1] if .sat.
llvm::Value* Saturate(LaneBuilder& code, const ptx::Instruction& instruction, llvm::Value* value);
// The lesser or the greater, with .NaN and .xorsign.abs.
llvm::Value* Extreme(LaneBuilder& code, const ptx::Instruction& instruction, bool minimum,
                     llvm::Value* a, llvm::Value* b);
// .rni, .rzi, .rmi and .rpi.
llvm::Value* RoundToIntegral(LaneBuilder& code, const ptx::Instruction& instruction,
                             llvm::Value* value);
// cvt to integer `into`, of the current instruction's shape.
llvm::Value* FloatToInt(OperandBuilder& to, const ptx::Instruction& instruction, llvm::Value* value,
                        ptx::Type into, ptx::Type from);

}  // namespace torpor::emulator
