// Bits: logic, shifts, permutations, predicates.
#include <algorithm>
#include <array>
#include <string>

#include "emulator/sass/opcodes.h"

namespace torpor::sass {
namespace {

std::string Hexadecimal(std::uint64_t number) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), kDigits[number % 16]);
    number /= 16;
  } while (number != 0);
  return "0x" + text;
}

// A function of three bits has a table with one bit for each combination of values; these are the
// tables of the three bits themselves.
constexpr unsigned kA = 0xf0;
constexpr unsigned kB = 0xcc;
constexpr unsigned kC = 0xaa;

// The analysis of lanes knows the plain operations, but not lop3.
Value Logic(Emitter& to, const MachineInstruction& instruction) {
  const SourceOperand sources[] = {instruction.a(), instruction.b(), instruction.c()};
  constexpr unsigned kTables[] = {kA, kB, kC};
  // A source of 0 leaves only the rows of the table with that value.
  auto table = static_cast<unsigned>(instruction.Bits(72, 8));
  constexpr unsigned kShifts[] = {4, 2, 1};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!sources[i].is_zero()) continue;
    const unsigned rows = table & ~kTables[i] & 0xff;
    table = rows | rows << kShifts[i];
  }
  if (table == 0) return Emitter::Number(0);
  if (table == 0xff) return Emitter::Number(-1);
  for (std::size_t i = 0; i < 3; ++i) {
    if (table == kTables[i]) return to.Read(sources[i]);
    if (table == (~kTables[i] & 0xff)) {
      return to.Compute(Width::k32, "not.b32 ?, ?", {to.Read(sources[i])});
    }
    for (std::size_t j = i + 1; j < 3; ++j) {
      std::string_view operation;
      if (table == (kTables[i] & kTables[j])) operation = "and.b32 ?, ?, ?";
      if (table == (kTables[i] | kTables[j])) operation = "or.b32 ?, ?, ?";
      if (table == (kTables[i] ^ kTables[j])) operation = "xor.b32 ?, ?, ?";
      if (operation.empty()) continue;
      // An immediate goes last, where the lane analysis looks for constants.
      const bool swapped = sources[i].kind == SourceOperand::Kind::kImmediate;
      return to.Compute(Width::k32, operation,
                        {to.Read(sources[swapped ? j : i]), to.Read(sources[swapped ? i : j])});
    }
  }
  return to.Compute(Width::k32, "lop3.b32 ?, ?, ?, ?, " + Hexadecimal(table),
                    {to.Read(sources[0]), to.Read(sources[1]), to.Read(sources[2])});
}

// A predicate as 0 or ~0.
Value Mask(Emitter& to, const PredicateOperand& predicate) {
  return to.Compute(Width::k32, "selp.b32 ?, -1, 0, ?", {to.Read(predicate)});
}

// Writes a function of three predicates as an operation of PTX if there is one, else by lop3 on
// masks.
Value PredicateLogic(Emitter& to, const std::array<PredicateOperand, 3>& sources, unsigned table) {
  constexpr unsigned kTables[] = {kA, kB, kC};
  constexpr unsigned kShifts[] = {4, 2, 1};
  // Constant predicates select rows.
  std::array<bool, 3> free{};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!sources[i].reg.is_fixed()) {
      free[i] = true;
      continue;
    }
    const bool value = !sources[i].negated;
    const unsigned rows = value ? (table & kTables[i]) >> kShifts[i] : table & ~kTables[i];
    table = (rows | rows << kShifts[i]) & 0xff;
  }
  if (table == 0 || table == 0xff) {
    return to.Read(PredicateOperand{{RegisterFile::kPredicate, Register::kTrue}, table == 0});
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (!free[i]) continue;
    if (table == kTables[i]) return to.Read(sources[i]);
    if (table == (~kTables[i] & 0xff)) {
      return to.Read(PredicateOperand{sources[i].reg, !sources[i].negated});
    }
    for (std::size_t j = i + 1; j < 3; ++j) {
      std::string_view operation;
      if (table == (kTables[i] & kTables[j])) operation = "and.pred ?, ?, ?";
      if (table == (kTables[i] | kTables[j])) operation = "or.pred ?, ?, ?";
      if (table == (kTables[i] ^ kTables[j])) operation = "xor.pred ?, ?, ?";
      if (operation.empty() || !free[j]) continue;
      return to.Compute(Width::kPredicate, operation, {to.Read(sources[i]), to.Read(sources[j])});
    }
  }
  const Value bits = to.Compute(Width::k32, "lop3.b32 ?, ?, ?, ?, " + Hexadecimal(table),
                                {Mask(to, sources[0]), Mask(to, sources[1]), Mask(to, sources[2])});
  return to.Compute(Width::kPredicate, "setp.ne.u32 ?, ?, 0", {bits});
}

// A word, inverted where bit 63 says so.
Value MaybeInverted(Emitter& to, const MachineInstruction& instruction) {
  const SourceOperand source = instruction.b();
  Value value = to.Read(source);
  if (source.kind == SourceOperand::Kind::kImmediate || !source.negated) return value;
  return to.Compute(Width::k32, "not.b32 ?, ?", {value});
}

}  // namespace

// Any function of three words by its table; the optional predicate tells whether the result is 0.
void LiftLop3(Emitter& to, const MachineInstruction& instruction) {
  const Value result = Logic(to, instruction);
  const Register predicate = instruction.PredicateAt(81);
  if (predicate.is_fixed()) return to.Move(instruction.destination(), result);
  const PredicateOperand other = instruction.PredicateSourceAt(87, 90);
  const bool conjunction = instruction.Bit(80);
  Value set = to.Compute(Width::kPredicate, "setp.ne.s32 ?, ?, 0", {result});
  const bool is_neutral = conjunction ? other.always() : other.never();
  if (!is_neutral) {
    set = to.Compute(Width::kPredicate, conjunction ? "and.pred ?, ?, ?" : "or.pred ?, ?, ?",
                     {set, to.Read(other)});
  }
  to.Move(instruction.destination(), result);
  to.Move(predicate, set);
}

// Any two functions of three predicates, by two tables.
void LiftPlop3(Emitter& to, const MachineInstruction& instruction) {
  std::array<PredicateOperand, 3> sources = {instruction.PredicateSourceAt(87, 90),
                                             instruction.PredicateSourceAt(77, 80),
                                             instruction.PredicateSourceAt(68, 71)};
  if (!instruction.is_uniform() && instruction.Bit(67)) {
    sources[2].reg.file = RegisterFile::kUniformPredicate;
  }
  const auto first = static_cast<unsigned>(instruction.Bits(64, 3) | instruction.Bits(72, 5) << 3);
  const auto second = static_cast<unsigned>(instruction.Bits(16, 8));
  const Register first_result = instruction.PredicateAt(81);
  const Register second_result = instruction.PredicateAt(84);
  Value first_value;
  Value second_value;
  if (!first_result.is_fixed()) first_value = PredicateLogic(to, sources, first);
  if (!second_result.is_fixed()) second_value = PredicateLogic(to, sources, second);
  // The first destination may be a source of the second value.
  if (!first_result.is_fixed() && second_value.kind == Value::Kind::kRegister) {
    second_value = to.Compute(Width::kPredicate, "mov.pred ?, ?", {second_value});
  }
  to.Move(first_result, first_value);
  to.Move(second_result, second_value);
}

// PLOP3 of the signs of three registers, by two tables.
void LiftPlop3Sign(Emitter& to, const MachineInstruction& instruction) {
  const auto result = [&](unsigned table) {
    const Value combined =
        to.Compute(Width::k32, "lop3.b32 ?, ?, ?, ?, ?",
                   {to.Read(instruction.a()), to.Read(instruction.b()), to.Read(instruction.c()),
                    Emitter::Number(static_cast<std::int64_t>(instruction.Bits(table, 8)))});
    return to.Compute(Width::kPredicate, "setp.lt.s32 ?, ?, 0", {combined});
  };
  to.Move(instruction.PredicateAt(81), result(72));
  to.Move(instruction.PredicateAt(84), result(16));
}

// One of the words c:a, shifted by b.
void LiftShf(Emitter& to, const MachineInstruction& instruction) {
  const bool is_right = instruction.Bit(76);
  const bool is_high = instruction.Bit(80);
  const bool wraps = instruction.Bit(75);
  const auto type = static_cast<unsigned>(instruction.Bits(73, 2));
  const bool is_wide = type < 2;  // S64, U64, S32, U32
  const bool is_signed = type == 0 || type == 2;
  const SourceOperand low = instruction.a();
  const SourceOperand high = instruction.c();
  const SourceOperand by = instruction.b();
  const Value result = to.Write(instruction.destination());
  Value amount = to.Read(by);
  if (by.kind == SourceOperand::Kind::kImmediate) {
    const std::uint32_t bits = is_wide ? 64 : 32;
    const std::uint32_t number = wraps ? by.immediate % bits : std::min(by.immediate, bits);
    amount = Emitter::Number(number);
  } else if (wraps) {
    amount =
        to.Compute(Width::k32, "and.b32 ?, ?, ?", {amount, Emitter::Number(is_wide ? 63 : 31)});
  }
  if (!is_right && !is_high) {
    return to.Emit("shl.b32 ?, ?, ?", {result, to.Read(low), amount});
  }
  if (is_right && is_high) {
    to.Emit(is_signed ? "shr.s32 ?, ?, ?" : "shr.u32 ?, ?, ?", {result, to.Read(high), amount});
    const bool is_sign = is_signed && amount.text == "31";
    if (!is_sign || instruction.destination().is_fixed()) return;
    Half half;
    half.kind = Half::Kind::kSign;
    half.terms = {{to.Read(high), false}};
    half.result = instruction.destination();
    return to.MarkHalf(std::move(half));
  }
  if (!is_wide) {
    return to.Emit(is_right ? "shf.r.clamp.b32 ?, ?, ?, ?" : "shf.l.clamp.b32 ?, ?, ?, ?",
                   {result, to.Read(low), to.Read(high), amount});
  }
  const Value whole = to.Compute(Width::k64, "mov.b64 ?, {?, ?}", {to.Read(low), to.Read(high)});
  const std::string_view shift = !is_right   ? "shl.b64 ?, ?, ?"
                                 : is_signed ? "shr.s64 ?, ?, ?"
                                             : "shr.u64 ?, ?, ?";
  const Value shifted = to.Compute(Width::k64, shift, {whole, amount});
  to.Emit(is_high ? "mov.b64 {_, ?}, ?" : "cvt.u32.u64 ?, ?", {result, shifted});
}

// Picks four bytes from two words; PTX has the same modes.
void LiftPrmt(Emitter& to, const MachineInstruction& instruction) {
  constexpr std::array<std::string_view, 8> kModes = {"",     ".f4e", ".b4e",  ".rc8",
                                                      ".ecl", ".ecr", ".rc16", ""};
  const std::string mode(kModes[instruction.Bits(72, 3)]);
  to.Emit("prmt.b32" + mode + " ?, ?, ?, ?",
          {to.Write(instruction.destination()), to.Read(instruction.a()), to.Read(instruction.c()),
           to.Read(instruction.b())});
}

// The position of the highest set bit (for signed numbers, the highest bit unlike the sign), or -1.
void LiftFlo(Emitter& to, const MachineInstruction& instruction) {
  const std::string type = instruction.Bit(73) ? "s32" : "u32";
  const std::string shift = instruction.Bit(74) ? "shiftamt." : "";
  const Value place =
      to.Compute(Width::k32, "bfind." + shift + type + " ?, ?", {MaybeInverted(to, instruction)});
  const Register found = instruction.PredicateAt(81);
  to.Move(instruction.destination(), place);
  if (!found.is_fixed()) to.Emit("setp.ne.s32 ?, ?, -1", {to.Write(found), place});
}

void LiftPopc(Emitter& to, const MachineInstruction& instruction) {
  const Value source = MaybeInverted(to, instruction);
  to.Emit("popc.b32 ?, ?", {to.Write(instruction.destination()), source});
}

void LiftBrev(Emitter& to, const MachineInstruction& instruction) {
  const Value source = MaybeInverted(to, instruction);
  to.Emit("brev.b32 ?, ?", {to.Write(instruction.destination()), source});
}

// A mask of b bits from bit a on.
void LiftBmsk(Emitter& to, const MachineInstruction& instruction) {
  const std::string_view format =
      instruction.Bit(75) ? "bmsk.wrap.b32 ?, ?, ?" : "bmsk.clamp.b32 ?, ?, ?";
  to.Emit(format, {to.Write(instruction.destination()), to.Read(instruction.a()),
                   to.Read(instruction.b())});
}

// The low bits, extended.
void LiftSgxt(Emitter& to, const MachineInstruction& instruction) {
  Value bits = to.Read(instruction.b());
  if (instruction.Bit(75)) {
    bits = to.Compute(Width::k32, "and.b32 ?, ?, ?", {bits, Emitter::Number(31)});
  }
  const std::string_view format = instruction.Bit(73) ? "bfe.s32 ?, ?, 0, ?" : "bfe.u32 ?, ?, 0, ?";
  to.Emit(format, {to.Write(instruction.destination()), to.Read(instruction.a()), bits});
}

// Stores the predicates of a mask as bits of a word, and keeps the other bits.
void LiftP2r(Emitter& to, const MachineInstruction& instruction) {
  const SourceOperand mask = instruction.b();
  if (mask.kind != SourceOperand::Kind::kImmediate) return to.Unsupported("without a mask");
  const auto byte = static_cast<unsigned>(instruction.Bits(76, 2)) * 8;
  const std::uint32_t chosen = mask.immediate & 0x7f;
  Value word = to.Read(instruction.a());
  if (!instruction.a().is_zero()) {
    word = to.Compute(Width::k32, "and.b32 ?, ?, ?",
                      {word, Emitter::Number(static_cast<std::int32_t>(~(chosen << byte)))});
  }
  for (unsigned i = 0; i < Register::kTrue; ++i) {
    if ((chosen >> i & 1) == 0) continue;
    const Value bit =
        to.Compute(Width::k32, "selp.b32 ?, ?, 0, ?",
                   {Emitter::Number(static_cast<std::int32_t>(std::uint32_t{1} << (i + byte))),
                    to.Read(Register{RegisterFile::kPredicate, static_cast<std::uint8_t>(i)})});
    word = to.Compute(Width::k32, "or.b32 ?, ?, ?", {bit, word});
  }
  to.Move(instruction.destination(), word);
}

// Sets the predicates of a mask from the bits of a word.
void LiftR2p(Emitter& to, const MachineInstruction& instruction) {
  const SourceOperand mask = instruction.b();
  if (mask.kind != SourceOperand::Kind::kImmediate) return to.Unsupported("without a mask");
  const auto byte = static_cast<unsigned>(instruction.Bits(76, 2)) * 8;
  const Value word = to.Read(instruction.a());
  for (unsigned i = 0; i < Register::kTrue; ++i) {
    if ((mask.immediate >> i & 1) == 0) continue;
    const Value bit = to.Compute(
        Width::k32, "and.b32 ?, ?, ?",
        {word, Emitter::Number(static_cast<std::int32_t>(std::uint32_t{1} << (i + byte)))});
    to.Emit("setp.ne.u32 ?, ?, 0",
            {to.Write(Register{RegisterFile::kPredicate, static_cast<std::uint8_t>(i)}), bit});
  }
}

}  // namespace torpor::sass
