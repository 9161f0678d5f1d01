// Numbers of 16 bits, two in a register.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "emulator/sass/float_operands.h"
#include "emulator/sass/opcodes.h"

namespace torpor::sass {
namespace {

// The part of a register that a source means.
enum Part : unsigned {
  kBoth = 0,    // .H1_H0
  kSingle = 1,  // .F32: a number of 32 bits, cut to 16
  kLower = 2,   // .H0_H0
  kUpper = 3,   // .H1_H1
};

// The third source has its modifiers in other bits here.
SourceOperand LastRegister(const MachineInstruction& instruction, SourceOperand source) {
  source.absolute = instruction.Bit(83);
  source.negated = instruction.Bit(84);
  return source;
}

// Whether the operand of any kind is the third source instead of the second.
bool WideIsThird(const MachineInstruction& instruction) {
  return SecondSource(instruction).reg == instruction.c().reg &&
         SecondSource(instruction).kind == instruction.c().kind && instruction.form() != 1;
}

SourceOperand FactorB(const MachineInstruction& instruction) {
  return WideIsThird(instruction) ? LastRegister(instruction, instruction.b()) : instruction.b();
}

SourceOperand SummandC(const MachineInstruction& instruction) {
  return WideIsThird(instruction) ? instruction.c() : LastRegister(instruction, instruction.c());
}

// Both halves of a word.
std::uint32_t Twice(std::uint32_t half) { return half << 16 | half; }

// Copies one half of `value` to both.
Value Replicated(Emitter& to, const Value& value, Part part) {
  return to.Compute(Width::k32, "prmt.b32 ?, ?, ?, ?",
                    {value, value, Emitter::Number(part == kUpper ? 0x3232 : 0x1010)});
}

// Applies the modifiers to both halves: sign bits are cleared or inverted.
Value Modified(Emitter& to, const SourceOperand& source, Value value) {
  if (source.absolute) value = to.Compute(Width::k32, "and.b32 ?, ?, 0x7fff7fff", {value});
  if (source.negated) value = to.Compute(Width::k32, "xor.b32 ?, ?, 0x80008000", {value});
  return value;
}

// Both halves.
Value ReadPacked(Emitter& to, const SourceOperand& source) {
  if (source.kind == SourceOperand::Kind::kImmediate) return Emitter::Number(source.immediate);
  if (source.is_zero()) {
    const bool is_negative = source.negated;
    return Emitter::Number(is_negative ? Twice(0x8000) : 0);
  }
  Value value = to.Read(source);
  if (source.half == kSingle) {
    value = to.Compute(Width::k32, "cvt.rz.f16.f32 ?, ?", {value});
    value = Replicated(to, value, kLower);
  } else if (source.half != kBoth) {
    value = Replicated(to, value, static_cast<Part>(source.half));
  }
  return Modified(to, source, value);
}

// One half, in the lower 16 bits of a word with arbitrary upper bits.
Value ReadHalf(Emitter& to, const SourceOperand& source, bool upper) {
  if (source.kind == SourceOperand::Kind::kImmediate) {
    return Emitter::Number(source.immediate >> (upper ? 16 : 0) & 0xffff);
  }
  if (source.half == kSingle) to.Unsupported("of a number of 32 bits");
  Value value = to.Read(source);
  const bool shifted = source.half == kBoth ? upper : source.half == kUpper;
  if (shifted) value = to.Compute(Width::k32, "shr.u32 ?, ?, 16", {value});
  if (source.absolute) value = to.Compute(Width::k32, "and.b32 ?, ?, 0x7fff", {value});
  if (source.negated) value = to.Compute(Width::k32, "xor.b32 ?, ?, 0x8000", {value});
  return value;
}

// The lower half as a number of 32 bits.
Value ReadWidened(Emitter& to, const SourceOperand& source) {
  if (source.is_zero()) return Emitter::Number(source.negated ? 0x80000000 : 0);
  Value half = ReadHalf(to, source, false);
  return to.Compute(Width::k32, "cvt.f32.f16 ?, ?", {half});
}

// -0 in both halves, the neutral summand.
bool IsMinusZero(const SourceOperand& source) {
  return source.kind == SourceOperand::Kind::kRegister && source.is_zero() && source.negated;
}

// A conversion of the lower half, encoded as a sum with -0.
bool LiftWidening(Emitter& to, const MachineInstruction& instruction, const SourceOperand& a,
                  const SourceOperand& b) {
  if (instruction.Bit(77) || (!IsMinusZero(a) && !IsMinusZero(b))) return false;
  const SourceOperand& source = IsMinusZero(a) ? b : a;
  if (source.is_zero()) return false;
  to.Emit("cvt.f32.f16 ?, ?", {to.Write(instruction.destination()), ReadHalf(to, source, false)});
  return true;
}

// The operation on both halves; with .F32, on the lower halves with a 32-bit result.
void LiftPacked(Emitter& to, const MachineInstruction& instruction, const std::string& operation,
                const std::vector<SourceOperand>& sources) {
  const bool is_single = instruction.Bit(78);
  std::string format = operation + ".rn";
  if (FlushesToZero(instruction)) {
    if (is_single) return to.Unsupported("with .F32 and .FTZ");
    format += ".ftz";
  }
  if (instruction.Bit(77)) format += ".sat";
  format += is_single ? ".f32 ?" : ".f16x2 ?";
  std::vector<Value> values = {Value{}};
  values.reserve(sources.size() + 1);
  for (const SourceOperand& source : sources) {
    format += ", ?";
    values.push_back(is_single ? ReadWidened(to, source) : ReadPacked(to, source));
  }
  values[0] = to.Write(instruction.destination());
  to.Emit(format, std::move(values));
}

Value CompareHalves(Emitter& to, const MachineInstruction& instruction, bool upper) {
  return Compare(to, instruction, "f16", ReadHalf(to, instruction.a(), upper),
                 ReadHalf(to, SecondSource(instruction), upper));
}

}  // namespace

void LiftHadd2(Emitter& to, const MachineInstruction& instruction) {
  const SourceOperand a = instruction.a();
  const SourceOperand b = SecondSource(instruction);
  const bool is_single = instruction.Bit(78);
  if (is_single && LiftWidening(to, instruction, a, b)) return;
  LiftPacked(to, instruction, "add", {a, b});
}

void LiftHmul2(Emitter& to, const MachineInstruction& instruction) {
  if (instruction.Bit(76)) return to.Unsupported("with .FMZ");
  LiftPacked(to, instruction, "mul", {instruction.a(), SecondSource(instruction)});
}

void LiftHfma2(Emitter& to, const MachineInstruction& instruction) {
  if (instruction.Bit(76)) return to.Unsupported("with .FMZ");
  LiftPacked(to, instruction, "fma",
             {instruction.a(), FactorB(instruction), SummandC(instruction)});
}

// Two predicates, one per half; .H_AND writes whether both comparisons hold.
void LiftHsetp2(Emitter& to, const MachineInstruction& instruction) {
  constexpr unsigned kOperation = 69;
  const Register first = instruction.PredicateAt(81);
  const Register second = instruction.PredicateAt(84);
  const bool is_joined = instruction.Bit(71);
  Value lower = CompareHalves(to, instruction, false);
  if (is_joined) {
    if (!second.is_fixed()) return to.Unsupported("with .H_AND and two results");
    lower = to.Compute(Width::kPredicate, "and.pred ?, ?, ?",
                       {lower, CompareHalves(to, instruction, true)});
  }
  lower = CombineWithPredicate(to, instruction, lower, kOperation);
  if (second.is_fixed()) return to.Move(first, lower);
  const Value upper =
      CombineWithPredicate(to, instruction, CompareHalves(to, instruction, true), kOperation);
  to.Move(first, lower);
  to.Move(second, upper);
}

// In each half, 1.0 or all ones where the comparison holds; else 0.
void LiftHset2(Emitter& to, const MachineInstruction& instruction) {
  const std::uint32_t truth = instruction.Bit(71) ? 0x3c00 : 0xffff;
  const auto half = [&](bool upper) {
    const Value holds =
        CombineWithPredicate(to, instruction, CompareHalves(to, instruction, upper), 69);
    return to.Compute(Width::k32, "selp.b32 ?, ?, 0, ?",
                      {Emitter::Number(upper ? std::int64_t{truth} << 16 : truth), holds});
  };
  const Value lower = half(false);
  const Value upper = half(true);
  to.Emit("or.b32 ?, ?, ?", {to.Write(instruction.destination()), lower, upper});
}

}  // namespace torpor::sass
