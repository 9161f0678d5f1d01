// Numbers of 32 bits: sums, products, comparisons.
#include <string>
#include <utility>

#include "emulator/sass/float_operands.h"
#include "emulator/sass/opcodes.h"

namespace torpor::sass {
namespace {

constexpr std::int64_t kOne = 0x3f800000;  // 1.0

// .FMZ: zero times anything is zero.
void RefuseFmz(Emitter& to, const MachineInstruction& instruction) {
  if (instruction.Bit(76)) to.Unsupported("with .FMZ");
}

// The biased exponent of a float.
Value Exponent(Emitter& to, const SourceOperand& source) {
  return to.Compute(Width::k32, "bfe.u32 ?, ?, 23, 8", {to.Read(source)});
}

// Whether number + from > range, wrapping below 0.
Value IsOutside(Emitter& to, const Value& number, std::int64_t from, std::int64_t range) {
  const Value moved = to.Compute(Width::k32, "add.s32 ?, ?, ?", {number, Emitter::Number(from)});
  return to.Compute(Width::kPredicate, "setp.gt.u32 ?, ?, ?", {moved, Emitter::Number(range)});
}

}  // namespace

void LiftFadd(Emitter& to, const MachineInstruction& instruction) {
  const Value a = ReadFloat(to, instruction.a());
  const Value b = ReadFloat(to, SecondSource(instruction));
  to.Emit("add" + ArithmeticFlags(instruction) + ".f32 ?, ?, ?",
          {to.Write(instruction.destination()), a, b});
}

void LiftFmul(Emitter& to, const MachineInstruction& instruction) {
  constexpr std::uint64_t kUnscaled = 4;  // others are .D8 to .M8
  if (instruction.Bits(84, 3) != kUnscaled) return to.Unsupported("with a scaled result");
  RefuseFmz(to, instruction);
  const Value a = ReadFloat(to, instruction.a());
  const Value b = ReadFloat(to, SecondSource(instruction));
  to.Emit("mul" + ArithmeticFlags(instruction) + ".f32 ?, ?, ?",
          {to.Write(instruction.destination()), a, b});
}

void LiftFfma(Emitter& to, const MachineInstruction& instruction) {
  RefuseFmz(to, instruction);
  const Value a = ReadFloat(to, instruction.a());
  const Value b = ReadFloat(to, instruction.b());
  const Value c = ReadFloat(to, instruction.c());
  to.Emit("fma" + ArithmeticFlags(instruction) + ".f32 ?, ?, ?, ?",
          {to.Write(instruction.destination()), a, b, c});
}

// The minimum under the predicate, else the maximum; of a number and NaN, the number.
void LiftFmnmx(Emitter& to, const MachineInstruction& instruction) {
  const std::string type = FlushesToZero(instruction) ? ".ftz.f32 ?, ?, ?" : ".f32 ?, ?, ?";
  const PredicateOperand is_min = instruction.PredicateSourceAt(87, 90);
  const Value a = ReadFloat(to, instruction.a());
  const Value b = ReadFloat(to, SecondSource(instruction));
  const Register result = instruction.destination();
  if (is_min.reg.is_fixed()) {
    return to.Emit((is_min.negated ? "max" : "min") + type, {to.Write(result), a, b});
  }
  const Value smaller = to.Compute(Width::k32, "min" + type, {a, b});
  const Value larger = to.Compute(Width::k32, "max" + type, {a, b});
  to.Emit("selp.b32 ?, ?, ?, ?", {to.Write(result), smaller, larger, to.Read(is_min)});
}

void LiftFsel(Emitter& to, const MachineInstruction& instruction) {
  if (FlushesToZero(instruction)) return to.Unsupported("with .FTZ");
  const PredicateOperand chosen = instruction.PredicateSourceAt(87, 90);
  Value a = ReadFloat(to, instruction.a());
  Value b = ReadFloat(to, SecondSource(instruction));
  if (chosen.negated) std::swap(a, b);
  to.Emit("selp.b32 ?, ?, ?, ?", {to.Write(instruction.destination()), a, b, to.Read(chosen.reg)});
}

void LiftFsetp(Emitter& to, const MachineInstruction& instruction) {
  const Value compared = Compare(to, instruction, "f32", ReadFloat(to, instruction.a()),
                                 ReadFloat(to, SecondSource(instruction)));
  WriteComparison(to, instruction, compared);
}

// 1.0 or 0.
void LiftFset(Emitter& to, const MachineInstruction& instruction) {
  const Value compared = Compare(to, instruction, "f32", ReadFloat(to, instruction.a()),
                                 ReadFloat(to, SecondSource(instruction)));
  const Value holds = CombineWithPredicate(to, instruction, compared, 74);
  to.Emit("selp.b32 ?, ?, 0, ?",
          {to.Write(instruction.destination()), Emitter::Number(kOne), holds});
}

// Whether a / b is unsafe to compute by the reciprocal of b and fused multiplications, because a
// part may be subnormal or infinite. Code then divides in another way, correct for all numbers, so
// the predicate may be true too often but never too seldom.
void LiftFchk(Emitter& to, const MachineInstruction& instruction) {
  const Value a = Exponent(to, instruction.a());
  const Value b = Exponent(to, SecondSource(instruction));
  const Value difference = to.Compute(Width::k32, "sub.s32 ?, ?, ?", {a, b});
  // The remainder's last bit is 2^-46 of a.
  const Value dividend = IsOutside(to, a, -26, 226);
  const Value divisor = IsOutside(to, b, -2, 249);
  const Value quotient = IsOutside(to, difference, 124, 248);
  const Value either = to.Compute(Width::kPredicate, "or.pred ?, ?, ?", {dividend, divisor});
  to.Emit("or.pred ?, ?, ?", {to.Write(instruction.PredicateAt(81)), either, quotient});
}

}  // namespace torpor::sass
