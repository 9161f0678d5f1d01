// Integers: moves, sums, products, comparisons.
#include <array>
#include <string>
#include <utility>

#include "emulator/sass/opcodes.h"

namespace torpor::sass {
namespace {

// -x of a source, as a term of a sum without carry.
Value Negated(Emitter& to, Value value, bool negated) {
  if (!negated) return value;
  return to.Compute(Width::k32, "neg.s32 ?, ?", {std::move(value)});
}

// ~x of a source: with a carry of 1, the negation in a sum.
Value Inverted(Emitter& to, Value value, bool inverted) {
  if (!inverted) return value;
  return to.Compute(Width::k32, "not.b32 ?, ?", {std::move(value)});
}

// Widens a word, so that sums keep their carry.
Value Extended(Emitter& to, Value value) {
  return to.Compute(Width::k64, "cvt.u64.u32 ?, ?", {std::move(value)});
}

// 1 where the predicate holds.
Value Carry(Emitter& to, const PredicateOperand& predicate) {
  if (predicate.never()) return Emitter::Number(0);
  return to.Compute(Width::k32, "selp.b32 ?, 1, 0, ?", {to.Read(predicate)});
}

// Bits 32 and 33 of a sum of words count the overflows.
void WriteCarries(Emitter& to, const Value& sum, const Register& first, const Register& second) {
  if (first.is_fixed() && second.is_fixed()) return;
  const Value high = to.Compute(Width::k64, "shr.u64 ?, ?, 32", {sum});
  if (!first.is_fixed()) to.Emit("setp.ge.u64 ?, ?, 1", {to.Write(first), high});
  if (!second.is_fixed()) to.Emit("setp.ge.u64 ?, ?, 2", {to.Write(second), high});
}

// The terms of a sum with their negations.
struct Terms {
  std::array<SourceOperand, 3> sources;
  std::array<bool, 3> negated{};
};

// The sum, modulo 2^32, of the non-zero terms.
Value PlainSum(Emitter& to, const Terms& terms) {
  Value sum;
  bool empty = true;
  const auto add = [&](std::size_t i, bool negative) {
    if (terms.sources[i].is_zero() || terms.negated[i] != negative) return;
    Value value = to.Read(terms.sources[i]);
    if (empty) {
      sum = Negated(to, std::move(value), negative);
      empty = false;
    } else {
      sum = to.Compute(Width::k32, negative ? "sub.s32 ?, ?, ?" : "add.s32 ?, ?, ?",
                       {sum, std::move(value)});
    }
  };
  for (std::size_t i = 0; i < 3; ++i) add(i, false);
  for (std::size_t i = 0; i < 3; ++i) add(i, true);
  return empty ? Emitter::Number(0) : sum;
}

// The sum as a number of 64 bits. -x is ~x + 1, and where there is a carry in, ~x.
Value WholeSum(Emitter& to, const Terms& terms, bool extended, const PredicateOperand& first,
               const PredicateOperand& second) {
  Value sum;
  bool empty = true;
  std::int64_t ones = 0;
  const auto add = [&](Value value) {
    sum = empty ? value : to.Compute(Width::k64, "add.s64 ?, ?, ?", {sum, std::move(value)});
    empty = false;
  };
  for (std::size_t i = 0; i < 3; ++i) {
    if (terms.sources[i].is_zero() && !terms.negated[i]) continue;
    add(Extended(to, Inverted(to, to.Read(terms.sources[i]), terms.negated[i])));
    if (terms.negated[i] && !extended) ++ones;
  }
  if (extended && !first.never()) add(Extended(to, Carry(to, first)));
  if (extended && !second.never()) add(Extended(to, Carry(to, second)));
  if (empty || ones != 0) {
    sum = empty ? to.Compute(Width::k64, "mov.u64 ?, ?", {Emitter::Number(ones)})
                : to.Compute(Width::k64, "add.s64 ?, ?, ?", {sum, Emitter::Number(ones)});
  }
  return sum;
}

constexpr std::array<std::string_view, 8> kComparisons = {"",   "lt", "eq", "le",
                                                          "gt", "ne", "ge", ""};

// Combines `compared` by and, or or xor with another predicate; writes the result and its opposite,
// computed from the opposite comparison.
void WriteCombined(Emitter& to, const MachineInstruction& instruction, const Value& compared) {
  constexpr std::array<std::string_view, 4> kOperators = {"and", "or", "xor", ""};
  const std::string_view combine = kOperators[instruction.Bits(74, 2)];
  if (combine.empty()) return to.Unsupported("with a way to combine that is not known");
  const PredicateOperand other = instruction.PredicateSourceAt(87, 90);
  const auto combined = [&](const Value& value) {
    const bool is_neutral = combine == "and" ? other.always() : other.never();
    if (is_neutral) return value;
    return to.Compute(Width::kPredicate, std::string(combine) + ".pred ?, ?, ?",
                      {value, to.Read(other)});
  };
  const Register first = instruction.PredicateAt(81);
  const Register second = instruction.PredicateAt(84);
  const Value positive = combined(compared);
  if (second.is_fixed()) return to.Move(first, positive);
  const Value opposite = to.Compute(Width::kPredicate, "not.pred ?, ?", {compared});
  const Value negative = combined(opposite);
  to.Move(first, positive);
  to.Move(second, negative);
}

// A move that may copy half of a pair.
void MoveWord(Emitter& to, const Register& target, const Value& value) {
  if (target.is_fixed()) return;
  to.Move(target, value);
  Half half;
  half.kind = Half::Kind::kMove;
  half.terms = {{value, false}};
  half.result = target;
  to.MarkHalf(std::move(half));
}

// Marks a sum of words as a half, if exactly one carry comes in or goes out.
void MarkSum(Emitter& to, Half half, bool extended, const Register& first_out,
             const Register& second_out, const PredicateOperand& first_in,
             const PredicateOperand& second_in) {
  const bool is_high = extended && !first_in.reg.is_fixed() && !first_in.negated &&
                       second_in.never() && first_out.is_fixed() && second_out.is_fixed();
  const bool is_low = !extended && !first_out.is_fixed() && second_out.is_fixed();
  if (half.result.is_fixed() || !(is_high || is_low)) return;
  half.kind = is_high ? Half::Kind::kHighSum : Half::Kind::kLowSum;
  half.carry = is_high ? first_in.reg : first_out;
  to.MarkHalf(std::move(half));
}

// Whether the source is the constant 1: IMAD by 1 is a sum.
bool IsOne(const SourceOperand& source) {
  return source.kind == SourceOperand::Kind::kImmediate && source.immediate == 1;
}

constexpr PredicateOperand kNever{{RegisterFile::kPredicate, Register::kTrue}, true};
constexpr Register kNowhere{RegisterFile::kPredicate, Register::kTrue};

// Marks a comparison that is not combined with a predicate.
void MarkComparison(Emitter& to, const MachineInstruction& instruction, Half::Kind kind,
                    const std::string& comparison) {
  const bool is_plain =
      instruction.Bits(74, 2) == 0 && instruction.PredicateSourceAt(87, 90).always() &&
      !instruction.PredicateAt(81).is_fixed() && instruction.PredicateAt(84).is_fixed();
  const PredicateOperand low = instruction.PredicateSourceAt(68, 71);
  const bool is_high = kind == Half::Kind::kHighComparison;
  // The low words have no sign.
  const bool fits = is_high ? !low.negated && !low.reg.is_fixed() : !instruction.Bit(73);
  if (!is_plain || !fits) return;
  Half half;
  half.kind = kind;
  half.terms = {{to.Read(instruction.a()), false}, {to.Read(instruction.b()), false}};
  half.result = instruction.PredicateAt(81);
  half.carry = is_high ? low.reg : half.result;
  half.comparison = comparison;
  half.is_signed = instruction.Bit(73);
  to.MarkHalf(std::move(half));
}

}  // namespace

void LiftMov(Emitter& to, const MachineInstruction& instruction) {
  MoveWord(to, instruction.destination(), to.Read(instruction.b()));
}

void LiftSel(Emitter& to, const MachineInstruction& instruction) {
  const PredicateOperand chosen = instruction.PredicateSourceAt(87, 90);
  const Value predicate = to.Read(chosen.reg);
  Value first = to.Read(instruction.a());
  Value second = to.Read(instruction.b());
  if (chosen.negated) std::swap(first, second);
  to.Emit("selp.b32 ?, ?, ?, ?", {to.Write(instruction.destination()), first, second, predicate});
}

// A sum of three words, with up to two carries in and out.
void LiftIadd3(Emitter& to, const MachineInstruction& instruction) {
  Terms terms{{instruction.a(), instruction.b(), instruction.c()}, {}};
  for (std::size_t i = 0; i < 3; ++i) terms.negated[i] = terms.sources[i].negated;
  const bool extended = instruction.Bit(74);
  const PredicateOperand first_in = instruction.PredicateSourceAt(87, 90);
  const PredicateOperand second_in = instruction.PredicateSourceAt(77, 80);
  const Register first = instruction.PredicateAt(81);
  const Register second = instruction.PredicateAt(84);
  const bool carries = extended || !first.is_fixed() || !second.is_fixed();
  const Register result = instruction.destination();
  if (!carries) return to.Move(result, PlainSum(to, terms));
  const Value sum = WholeSum(to, terms, extended, first_in, second_in);
  to.Emit("cvt.u32.u64 ?, ?", {to.Write(result), sum});
  WriteCarries(to, sum, first, second);
  Half half;
  half.result = result;
  for (std::size_t i = 0; i < 3; ++i) {
    half.terms.push_back({to.Read(terms.sources[i]), terms.negated[i]});
  }
  MarkSum(to, std::move(half), extended, first, second, first_in, second_in);
}

// Low word of the product plus a word. Compilers also write moves and sums this way.
void LiftImad(Emitter& to, const MachineInstruction& instruction) {
  const SourceOperand a = instruction.a();
  const SourceOperand b = instruction.b();
  const SourceOperand c = instruction.c();
  const Register result = instruction.destination();
  const bool is_move = a.is_zero() || b.is_zero();
  if (instruction.Bit(74)) {
    // IMAD.X: the low word of the product and a carry.
    const Value product =
        is_move ? Emitter::Number(0)
                : to.Compute(Width::k32, "mul.lo.s32 ?, ?, ?", {to.Read(a), to.Read(b)});
    const Value sum =
        to.Compute(Width::k32, "add.s32 ?, ?, ?", {product, Inverted(to, to.Read(c), c.negated)});
    const PredicateOperand carry_in = instruction.PredicateSourceAt(87, 90);
    const Value carry = Carry(to, carry_in);
    to.Emit("add.s32 ?, ?, ?", {to.Write(result), sum, carry});
    if (!is_move && !IsOne(b)) return;
    Half half;
    half.result = result;
    half.terms = {{to.Read(c), c.negated}};
    if (!is_move) half.terms.push_back({to.Read(a), false});
    return MarkSum(to, std::move(half), true, kNowhere, kNowhere, carry_in, kNever);
  }
  if (is_move && !c.negated) return MoveWord(to, result, to.Read(c));
  const Value added = Negated(to, to.Read(c), c.negated);
  if (is_move) return to.Move(result, added);
  const bool negated = b.negated && b.kind != SourceOperand::Kind::kImmediate;
  const Value factor = Negated(to, to.Read(b), negated);
  if (IsOne(b)) {
    to.Emit("add.s32 ?, ?, ?", {to.Write(result), to.Read(a), added});
  } else if (c.is_zero()) {
    to.Emit("mul.lo.s32 ?, ?, ?", {to.Write(result), to.Read(a), factor});
  } else {
    to.Emit("mad.lo.s32 ?, ?, ?, ?", {to.Write(result), to.Read(a), factor, added});
  }
}

namespace {

// The 64-bit product plus 64 bits and perhaps a carry, with the carry out.
Value WideSum(Emitter& to, const MachineInstruction& instruction) {
  const std::string type = instruction.Bit(73) ? "s32" : "u32";
  const SourceOperand c = instruction.c();
  const Value product = to.Compute(Width::k64, "mul.wide." + type + " ?, ?, ?",
                                   {to.Read(instruction.a()), to.Read(instruction.b())});
  Value sum = to.Compute(Width::k64, "add.s64 ?, ?, ?", {product, to.ReadPair(c)});
  const Register carry = instruction.PredicateAt(81);
  Value overflow;
  if (!carry.is_fixed()) {
    overflow = to.Compute(Width::kPredicate, "setp.lt.u64 ?, ?, ?", {sum, product});
  }
  const PredicateOperand carry_in = instruction.PredicateSourceAt(87, 90);
  if (instruction.Bit(74) && !carry_in.never()) {
    sum = to.Compute(Width::k64, "add.s64 ?, ?, ?", {sum, Extended(to, Carry(to, carry_in))});
    if (!carry.is_fixed()) to.Unsupported("with a carry in and out");
  }
  to.Move(carry, overflow);
  return sum;
}

// Whether carries go in or out.
bool HasCarry(const MachineInstruction& instruction) {
  return !instruction.PredicateAt(81).is_fixed() || instruction.Bit(74);
}

}  // namespace

// The 64-bit product of words plus a pair.
void LiftImadWide(Emitter& to, const MachineInstruction& instruction) {
  const Register target = instruction.destination();
  if (HasCarry(instruction)) {
    const Value sum = WideSum(to, instruction);
    return to.Emit("mov.b64 ?, ?", {to.WritePair(target), sum});
  }
  const std::string type = instruction.Bit(73) ? "s32" : "u32";
  const SourceOperand c = instruction.c();
  const Value a = to.Read(instruction.a());
  const Value b = to.Read(instruction.b());
  const Value result = to.WritePair(target);
  if (c.is_zero()) return to.Emit("mul.wide." + type + " ?, ?, ?", {result, a, b});
  to.Emit("mad.wide." + type + " ?, ?, ?, ?", {result, a, b, to.ReadPair(c)});
}

// The high word of the product plus 64 bits.
void LiftImadHi(Emitter& to, const MachineInstruction& instruction) {
  const Register target = instruction.destination();
  if (!HasCarry(instruction) && instruction.c().is_zero()) {
    return to.Emit(instruction.Bit(73) ? "mul.hi.s32 ?, ?, ?" : "mul.hi.u32 ?, ?, ?",
                   {to.Write(target), to.Read(instruction.a()), to.Read(instruction.b())});
  }
  const Value sum = WideSum(to, instruction);
  to.Emit("mov.b64 {_, ?}, ?", {to.Write(target), sum});
}

// (a << shift) + b; with .HI, of the upper word of c:a shifted.
void LiftLea(Emitter& to, const MachineInstruction& instruction) {
  const auto shift = static_cast<unsigned>(instruction.Bits(75, 5));
  const bool is_high = instruction.Bit(80);
  const bool extended = instruction.Bit(74);
  const bool negated = instruction.Bit(72);
  const SourceOperand a = instruction.a();
  const SourceOperand b = instruction.b();
  const SourceOperand c = instruction.c();
  const Register carry = instruction.PredicateAt(81);
  Value shifted;
  const Value amount = Emitter::Number(shift);
  if (!is_high) {
    shifted =
        shift == 0 ? to.Read(a) : to.Compute(Width::k32, "shl.b32 ?, ?, ?", {to.Read(a), amount});
  } else {
    // With .SX32 the high word is the sign of the low word.
    const bool sign = instruction.Bit(73);
    const Value whole = sign
                            ? to.Compute(Width::k64, "cvt.s64.s32 ?, ?", {to.Read(a)})
                            : to.Compute(Width::k64, "mov.b64 ?, {?, ?}", {to.Read(a), to.Read(c)});
    const Value moved = to.Compute(Width::k64, "shl.b64 ?, ?, ?", {whole, amount});
    shifted = to.Compute(Width::k32, "mov.b64 {_, ?}, ?", {moved});
  }
  if (!extended && carry.is_fixed()) {
    shifted = Negated(to, shifted, negated);
    return to.Emit(b.negated ? "sub.s32 ?, ?, ?" : "add.s32 ?, ?, ?",
                   {to.Write(instruction.destination()), shifted, to.Read(b)});
  }
  Value sum = to.Compute(Width::k64, "add.s64 ?, ?, ?",
                         {Extended(to, Inverted(to, shifted, negated)),
                          Extended(to, Inverted(to, to.Read(b), b.negated))});
  const Value more = extended ? Extended(to, Carry(to, instruction.PredicateSourceAt(87, 90)))
                              : Emitter::Number((negated ? 1 : 0) + (b.negated ? 1 : 0));
  sum = to.Compute(Width::k64, "add.s64 ?, ?, ?", {sum, more});
  to.Emit("cvt.u32.u64 ?, ?", {to.Write(instruction.destination()), sum});
  WriteCarries(to, sum, carry, kNowhere);
  if (negated || is_high != extended) return;
  Half half;
  half.result = instruction.destination();
  half.shift = shift;
  half.first_is_whole = true;
  half.first_is_extended = is_high && instruction.Bit(73);
  half.low_of_first = to.Read(a);
  half.terms = {{is_high && !half.first_is_extended ? to.Read(c) : to.Read(a), false},
                {to.Read(b), b.negated}};
  if (b.negated) return;
  MarkSum(to, std::move(half), extended, carry, kNowhere, instruction.PredicateSourceAt(87, 90),
          kNever);
}

// Compares words and combines the result with a predicate; .EX compares the upper words of pairs.
void LiftIsetp(Emitter& to, const MachineInstruction& instruction) {
  const std::string type = instruction.Bit(73) ? "s32" : "u32";
  const std::string comparison(kComparisons[instruction.Bits(76, 3)]);
  const Value a = to.Read(instruction.a());
  const Value b = to.Read(instruction.b());
  if (comparison.empty()) {
    const bool always = instruction.Bits(76, 3) == 7;
    return WriteCombined(
        to, instruction,
        to.Read(PredicateOperand{.reg = {RegisterFile::kPredicate, 7}, .negated = !always}));
  }
  if (!instruction.Bit(72)) {
    const Value compared =
        to.Compute(Width::kPredicate, "setp." + comparison + "." + type + " ?, ?, ?", {a, b});
    WriteCombined(to, instruction, compared);
    return MarkComparison(to, instruction, Half::Kind::kLowComparison, comparison);
  }
  // .EX: a and b are the high words, and the predicate compares the low words.
  const Value low = to.Read(instruction.PredicateSourceAt(68, 71));
  const Value same = to.Compute(Width::kPredicate, "setp.eq.u32 ?, ?, ?", {a, b});
  const Value decided = to.Compute(Width::kPredicate, "and.pred ?, ?, ?", {same, low});
  Value compared = decided;
  if (comparison != "eq") {
    const std::string strict = comparison == "ne" ? "ne" : comparison[0] == 'l' ? "lt" : "gt";
    const Value apart =
        to.Compute(Width::kPredicate, "setp." + strict + "." + type + " ?, ?, ?", {a, b});
    compared = to.Compute(Width::kPredicate, "or.pred ?, ?, ?", {apart, decided});
  }
  WriteCombined(to, instruction, compared);
  MarkComparison(to, instruction, Half::Kind::kHighComparison, comparison);
}

// The minimum under the predicate, else the maximum.
void LiftImnmx(Emitter& to, const MachineInstruction& instruction) {
  const std::string type = instruction.Bit(73) ? "s32" : "u32";
  const PredicateOperand is_min = instruction.PredicateSourceAt(87, 90);
  const Value a = to.Read(instruction.a());
  const Value b = to.Read(instruction.b());
  const Value result = to.Write(instruction.destination());
  if (is_min.reg.is_fixed()) {
    return to.Emit((is_min.negated ? "max." : "min.") + type + " ?, ?, ?", {result, a, b});
  }
  const Value low = to.Compute(Width::k32, "min." + type + " ?, ?, ?", {a, b});
  const Value high = to.Compute(Width::k32, "max." + type + " ?, ?, ?", {a, b});
  to.Emit("selp.b32 ?, ?, ?, ?", {result, low, high, to.Read(is_min)});
}

void LiftIabs(Emitter& to, const MachineInstruction& instruction) {
  to.Emit("abs.s32 ?, ?", {to.Write(instruction.destination()), to.Read(instruction.b())});
}

// Products of bytes, or of two bytes and two 16-bit numbers, summed.
void LiftIdp(Emitter& to, const MachineInstruction& instruction) {
  if (!instruction.PredicateAt(81).is_fixed() && instruction.Bits(81, 3) != 0) {
    return to.Unsupported("with a predicate");
  }
  if (instruction.Bit(75)) return to.Unsupported("with a negated sum");
  const auto type = [&](unsigned bit) -> std::string {
    return instruction.Bit(bit) ? "s32" : "u32";
  };
  const std::string halves = instruction.Bit(77) ? "dp2a.hi." : "dp2a.lo.";
  to.Emit((instruction.Bit(76) ? halves : "dp4a.") + type(73) + "." + type(74) + " ?, ?, ?, ?",
          {to.Write(instruction.destination()), to.Read(instruction.a()), to.Read(instruction.b()),
           to.Read(instruction.c())});
}

// |a - b| + c
void LiftVabsdiff(Emitter& to, const MachineInstruction& instruction) {
  if (!instruction.PredicateAt(81).is_fixed() && instruction.Bits(81, 3) != 0) {
    return to.Unsupported("with a predicate");
  }
  to.Emit(instruction.Bit(73) ? "sad.s32 ?, ?, ?, ?" : "sad.u32 ?, ?, ?, ?",
          {to.Write(instruction.destination()), to.Read(instruction.a()), to.Read(instruction.b()),
           to.Read(instruction.c())});
}

}  // namespace torpor::sass
