#include "emulator/sass/float_operands.h"

#include <array>

namespace torpor::sass {
namespace {

constexpr std::uint32_t kSign = 0x80000000;

// The high word of a constant source, with its modifiers.
std::uint32_t FixedWord(const SourceOperand& source) {
  std::uint32_t word = source.kind == SourceOperand::Kind::kImmediate ? source.immediate : 0;
  if (source.absolute) word &= ~kSign;
  if (source.negated) word ^= kSign;
  return word;
}

// Whether the source is known at translation.
bool IsFixed(const SourceOperand& source) {
  return source.kind == SourceOperand::Kind::kImmediate || source.is_zero();
}

// Applies the modifiers: first the absolute value, then the negation.
Value Modified(Emitter& to, const SourceOperand& source, Value value, Width width) {
  const std::string type = width == Width::k64 ? ".f64 ?, ?" : ".f32 ?, ?";
  if (source.absolute) value = to.Compute(width, "abs" + type, {value});
  if (source.negated) value = to.Compute(width, "neg" + type, {value});
  return value;
}

}  // namespace

// Modifiers of a constant change its bits at once, without a PTX instruction.
Value ReadFloat(Emitter& to, const SourceOperand& source) {
  if (IsFixed(source)) return Emitter::Number(FixedWord(source));
  return Modified(to, source, to.Read(source), Width::k32);
}

Value ReadDouble(Emitter& to, const SourceOperand& source) {
  if (IsFixed(source)) {
    return Emitter::Number(static_cast<std::int64_t>(std::uint64_t{FixedWord(source)} << 32));
  }
  return Modified(to, source, to.ReadPair(source), Width::k64);
}

// Bits 9 to 11, the form, tell which source holds the operand.
SourceOperand SecondSource(const MachineInstruction& instruction) {
  constexpr std::array<bool, 8> kIsThird = {false, false, true, true, false, false, false, true};
  return kIsThird[instruction.form()] ? instruction.c() : instruction.b();
}

std::string_view RoundingOf(const MachineInstruction& instruction) {
  constexpr std::array<std::string_view, 4> kRoundings = {".rn", ".rm", ".rp", ".rz"};
  return kRoundings[instruction.Bits(78, 2)];
}

bool FlushesToZero(const MachineInstruction& instruction) { return instruction.Bit(80); }

std::string ArithmeticFlags(const MachineInstruction& instruction) {
  std::string flags(RoundingOf(instruction));
  if (FlushesToZero(instruction)) flags += ".ftz";
  if (instruction.Bit(77)) flags += ".sat";
  return flags;
}

Value Compare(Emitter& to, const MachineInstruction& instruction, std::string_view type,
              const Value& a, const Value& b) {
  constexpr std::array<std::string_view, 16> kComparisons = {
      "",    "lt",  "eq",  "le",  "gt",  "ne",  "ge",  "num",
      "nan", "ltu", "equ", "leu", "gtu", "neu", "geu", ""};
  const std::size_t comparison = instruction.Bits(76, 4);
  if (kComparisons[comparison].empty()) return Always(to, comparison != 0);
  const std::string flush = FlushesToZero(instruction) ? ".ftz." : ".";
  return to.Compute(
      Width::kPredicate,
      "setp." + std::string(kComparisons[comparison]) + flush + std::string(type) + " ?, ?, ?",
      {a, b});
}

Value CombineWithPredicate(Emitter& to, const MachineInstruction& instruction,
                           const Value& compared, unsigned operation) {
  constexpr std::array<std::string_view, 4> kOperations = {"and", "or", "xor", ""};
  const std::string_view combine = kOperations[instruction.Bits(operation, 2)];
  if (combine.empty()) to.Unsupported("with a way to combine that is not known");
  const PredicateOperand other = instruction.PredicateSourceAt(87, 90);
  if (combine == "and" ? other.always() : other.never()) return compared;
  return to.Compute(Width::kPredicate, std::string(combine) + ".pred ?, ?, ?",
                    {compared, to.Read(other)});
}

void WriteComparison(Emitter& to, const MachineInstruction& instruction, const Value& compared) {
  constexpr unsigned kOperation = 74;
  const Register first = instruction.PredicateAt(81);
  const Register second = instruction.PredicateAt(84);
  const Value positive = CombineWithPredicate(to, instruction, compared, kOperation);
  if (second.is_fixed()) return to.Move(first, positive);
  const Value opposite = to.Compute(Width::kPredicate, "not.pred ?, ?", {compared});
  const Value negative = CombineWithPredicate(to, instruction, opposite, kOperation);
  to.Move(first, positive);
  to.Move(second, negative);
}

Value Always(Emitter& to, bool value) {
  return to.Read(
      PredicateOperand{.reg = {RegisterFile::kPredicate, Register::kTrue}, .negated = !value});
}

}  // namespace torpor::sass
