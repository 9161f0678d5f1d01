// MUFU: approximate functions.
#include <array>
#include <string>

#include "emulator/sass/float_operands.h"
#include "emulator/sass/opcodes.h"

namespace torpor::sass {
namespace {

// Functions of MUFU that need more than an instruction of PTX.
enum MufuFunction : unsigned {
  kCos = 0,
  kSin = 1,
  kReciprocal64 = 6,
  kReciprocalRoot64 = 7,
};

// PTX's name of a function with the same meaning, else empty.
std::string_view PlainName(unsigned function) {
  constexpr std::array<std::string_view, 16> kNames = {"",      "", "ex2", "lg2",  "rcp",
                                                       "rsqrt", "", "",    "sqrt", "tanh"};
  return kNames[function];
}

// Converts turns to an angle; only the fraction matters. -0 stays -0.
Value Angle(Emitter& to, const Value& turns) {
  constexpr std::int64_t kHalf = 0x3f000000;
  constexpr std::int64_t kTwoPi = 0x40c90fdb;
  const Value whole = to.Compute(Width::k32, "cvt.rni.f32.f32 ?, ?", {turns});
  const Value rest = to.Compute(Width::k32, "sub.rn.f32 ?, ?, ?", {turns, whole});
  const Value magnitude = to.Compute(Width::k32, "abs.f32 ?, ?", {turns});
  const Value is_small =
      to.Compute(Width::kPredicate, "setp.lt.f32 ?, ?, ?", {magnitude, Emitter::Number(kHalf)});
  const Value fraction = to.Compute(Width::k32, "selp.b32 ?, ?, ?, ?", {turns, rest, is_small});
  return to.Compute(Width::k32, "mul.rn.f32 ?, ?, ?", {fraction, Emitter::Number(kTwoPi)});
}

// The high word of a 64-bit number, with subnormal numbers flushed to zero.
Value FlushedHighWord(Emitter& to, const Value& high) {
  constexpr std::int64_t kExponent = 0x7ff00000;
  constexpr std::int64_t kSign = 0x80000000;
  const Value exponent =
      to.Compute(Width::k32, "and.b32 ?, ?, ?", {high, Emitter::Number(kExponent)});
  const Value sign = to.Compute(Width::k32, "and.b32 ?, ?, ?", {high, Emitter::Number(kSign)});
  const Value is_tiny = to.Compute(Width::kPredicate, "setp.eq.u32 ?, ?, 0", {exponent});
  return to.Compute(Width::k32, "selp.b32 ?, ?, ?, ?", {sign, high, is_tiny});
}

// From and to the high word of a number of 64 bits.
void LiftHighWord(Emitter& to, const MachineInstruction& instruction, std::string_view name) {
  const Value high = FlushedHighWord(to, ReadFloat(to, instruction.b()));
  const Value low = to.Compute(Width::k32, "mov.u32 ?, 0", {});
  const Value number = to.Compute(Width::k64, "mov.b64 ?, {?, ?}", {low, high});
  const Value result = to.Compute(Width::k64, std::string(name) + ".approx.ftz.f64 ?, ?", {number});
  const Value word = to.Compute(Width::k32, "mov.b64 {_, ?}, ?", {result});
  to.Move(instruction.destination(), FlushedHighWord(to, word));
}

}  // namespace

void LiftMufu(Emitter& to, const MachineInstruction& instruction) {
  const auto function = static_cast<unsigned>(instruction.Bits(74, 4));
  const Register result = instruction.destination();
  if (function == kReciprocal64) return LiftHighWord(to, instruction, "rcp");
  if (function == kReciprocalRoot64) return LiftHighWord(to, instruction, "rsqrt");
  const bool is_half = instruction.Bit(73);
  const bool is_wave = function == kSin || function == kCos;
  const std::string name =
      is_wave ? (function == kSin ? "sin" : "cos") : std::string(PlainName(function));
  if (name.empty()) return to.Unsupported("of a function that is not known");
  const Value x = ReadFloat(to, instruction.b());
  if (is_half) {
    const bool has_modifiers = instruction.b().negated || instruction.b().absolute;
    if ((name != "ex2" && name != "tanh") || has_modifiers) return to.Unsupported("of halves");
    return to.Emit(name + ".approx.f16 ?, ?", {to.Write(result), x});
  }
  if (is_wave) {
    return to.Emit(name + ".approx.ftz.f32 ?, ?", {to.Write(result), Angle(to, x)});
  }
  to.Emit(name + (name == "tanh" ? ".approx.f32 ?, ?" : ".approx.ftz.f32 ?, ?"),
          {to.Write(result), x});
}

}  // namespace torpor::sass
