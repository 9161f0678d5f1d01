#pragma once

#include <string>
#include <string_view>

#include "emulator/sass/emitter.h"
#include "nvidia/machine_code/instruction.h"

// What instructions of floating point have in common.
namespace torpor::sass {

// A source with its modifiers, as the bits of a number.
Value ReadFloat(Emitter& to, const SourceOperand& source);   // f32
Value ReadDouble(Emitter& to, const SourceOperand& source);  // f64; immediates are high words

// The second source of instructions that have two, one of which may be of any kind.
SourceOperand SecondSource(const Instruction& instruction);

// ".rn", ".rm", ".rp" or ".rz"; with .ftz and .sat, of instructions that have them.
std::string_view RoundingOf(const Instruction& instruction);
std::string ArithmeticFlags(const Instruction& instruction);
bool FlushesToZero(const Instruction& instruction);

// A comparison of a and b, of which a number may be none. `type` is f16, f32 or f64, with ".ftz."
// before it where it flushes.
Value Compare(Emitter& to, const Instruction& instruction, std::string_view type, const Value& a,
              const Value& b);

// `compared` and, or, xor the predicate that the instruction names, by its two bits from
// `operation` on.
Value CombineWithPredicate(Emitter& to, const Instruction& instruction, const Value& compared,
                           unsigned operation);

// Into two predicates: `compared` so combined, by the bits 74 and 75, and its opposite.
void WriteComparison(Emitter& to, const Instruction& instruction, const Value& compared);

// A predicate that is always the same.
Value Always(Emitter& to, bool value);

}  // namespace torpor::sass
