#pragma once

#include "emulator/exec/codegen/builder/operand_builder.h"

// Values of f16 and bf16: bits as i16, numbers as f32, or as f64 rounded to odd.
namespace torpor::emulator {

// Whether `type` is f16, bf16 or a pair of either.
bool IsHalf(ptx::Type type);
bool IsHalfPair(ptx::Type type);

// i16 to f32.
llvm::Value* WidenHalf(LaneBuilder& code, llvm::Value* bits, ptx::Type type);
// f32, or f64 rounded to odd, to i16.
llvm::Value* NarrowHalf(LaneBuilder& code, llvm::Value* value, ptx::Type type,
                        Rounding rounding = Rounding::kNearest);
// Subnormal i16 to zero if .ftz.
llvm::Value* FlushHalf(LaneBuilder& code, const ptx::Instruction& instruction, llvm::Value* bits,
                       ptx::Type type);
// Half `part` of a pair, or a single number (`part` 0), as f32.
llvm::Value* ReadHalf(OperandBuilder& to, const ptx::Instruction& instruction,
                      const ptx::Operand& operand, ptx::Type type, unsigned part);
// To i16 with .relu, .sat, .satfinite and the instruction's rounding.
llvm::Value* FinishHalf(LaneBuilder& code, const ptx::Instruction& instruction, llvm::Value* value,
                        ptx::Type type);

// f64 rounded to odd: the sum of two f64, or an integer of at most 64 bits.
llvm::Value* SumToOdd(LaneBuilder& code, llvm::Value* a, llvm::Value* b);
llvm::Value* IntegerToOdd(LaneBuilder& code, llvm::Value* value, bool is_signed);

}  // namespace torpor::emulator
