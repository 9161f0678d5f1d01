#pragma once

#include <string>
#include <string_view>

#include "emulator/sass/emitter.h"
#include "nvidia/machine_code/instruction.h"

// Operands and flags that floating-point instructions share.
namespace torpor::sass {

// A source with its modifiers, as the bits of a number.
Value ReadFloat(Emitter& to, const SourceOperand& source);   // f32
Value ReadDouble(Emitter& to, const SourceOperand& source);  // f64; immediates are high words

// The second source of an instruction with two, of any kind.
SourceOperand SecondSource(const MachineInstruction& instruction);

// ".rn", ".rm", ".rp" or ".rz"; and with .ftz and .sat where the instruction has these flags.
std::string_view RoundingOf(const MachineInstruction& instruction);
std::string ArithmeticFlags(const MachineInstruction& instruction);
bool FlushesToZero(const MachineInstruction& instruction);

// Compares a and b, which may be NaN. `type` is f16, f32 or f64, after ".ftz." for instructions
// that flush.
Value Compare(Emitter& to, const MachineInstruction& instruction, std::string_view type,
              const Value& a, const Value& b);

// Combines `compared` by and, or or xor with the instruction's predicate. The operator is in two
// bits from `operation` on.
Value CombineWithPredicate(Emitter& to, const MachineInstruction& instruction,
                           const Value& compared, unsigned operation);

// Writes `compared`, combined by bits 74 and 75, to one predicate and its opposite to another.
void WriteComparison(Emitter& to, const MachineInstruction& instruction, const Value& compared);

// A constant predicate.
Value Always(Emitter& to, bool value);

}  // namespace torpor::sass
