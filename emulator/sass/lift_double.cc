// Numbers of 64 bits.
#include <string>

#include "emulator/sass/float_operands.h"
#include "emulator/sass/opcodes.h"

namespace torpor::sass {
namespace {

std::string Rounded(std::string_view operation, const MachineInstruction& instruction) {
  return std::string(operation) + std::string(RoundingOf(instruction)) + ".f64 ?, ?, ?";
}

Value IsNan(Emitter& to, const Value& value) {
  return to.Compute(Width::kPredicate, "setp.nan.f64 ?, ?, ?", {value, value});
}

// .MIN and .MAX: writes whether a is the extreme, and whether both are NaN.
void WriteExtreme(Emitter& to, const MachineInstruction& instruction, bool is_min, const Value& a,
                  const Value& b) {
  if (!instruction.PredicateSourceAt(87, 90).always() || instruction.Bits(74, 2) != 0) {
    return to.Unsupported("of an extreme with another predicate");
  }
  const Value extreme =
      to.Compute(Width::k64, is_min ? "min.f64 ?, ?, ?" : "max.f64 ?, ?, ?", {a, b});
  const Value is_a = to.Compute(Width::kPredicate, "setp.eq.b64 ?, ?, ?", {extreme, a});
  const Value neither =
      to.Compute(Width::kPredicate, "and.pred ?, ?, ?", {IsNan(to, a), IsNan(to, b)});
  to.Move(instruction.PredicateAt(81), is_a);
  to.Move(instruction.PredicateAt(84), neither);
}

}  // namespace

void LiftDadd(Emitter& to, const MachineInstruction& instruction) {
  const Value a = ReadDouble(to, instruction.a());
  const Value c = ReadDouble(to, instruction.c());
  to.Emit(Rounded("add", instruction), {to.WritePair(instruction.destination()), a, c});
}

void LiftDmul(Emitter& to, const MachineInstruction& instruction) {
  const Value a = ReadDouble(to, instruction.a());
  const Value b = ReadDouble(to, instruction.b());
  to.Emit(Rounded("mul", instruction), {to.WritePair(instruction.destination()), a, b});
}

void LiftDfma(Emitter& to, const MachineInstruction& instruction) {
  const Value a = ReadDouble(to, instruction.a());
  const Value b = ReadDouble(to, instruction.b());
  const Value c = ReadDouble(to, instruction.c());
  to.Emit(Rounded("fma", instruction) + ", ?", {to.WritePair(instruction.destination()), a, b, c});
}

void LiftDsetp(Emitter& to, const MachineInstruction& instruction) {
  constexpr std::uint64_t kMinMode = 0;
  constexpr std::uint64_t kMaxMode = 15;
  const std::uint64_t comparison = instruction.Bits(76, 4);
  const Value a = ReadDouble(to, instruction.a());
  const Value b = ReadDouble(to, SecondSource(instruction));
  if (comparison == kMinMode || comparison == kMaxMode) {
    return WriteExtreme(to, instruction, comparison == kMinMode, a, b);
  }
  WriteComparison(to, instruction, Compare(to, instruction, "f64", a, b));
}

}  // namespace torpor::sass
