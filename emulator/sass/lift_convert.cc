// Conversions between numbers of floating point and integers, and of each to another width.
#include <array>
#include <string>

#include "emulator/sass/float_operands.h"
#include "emulator/sass/opcodes.h"

namespace torpor::sass {
namespace {

// Widths are encoded as 8 << n bits.
unsigned ResultBits(const MachineInstruction& instruction) {
  return 8U << static_cast<unsigned>(instruction.Bits(75, 2));
}
unsigned SourceBits(const MachineInstruction& instruction) {
  return 8U << static_cast<unsigned>(instruction.Bits(84, 2));
}

std::string FloatType(unsigned bits) { return std::string("f").append(std::to_string(bits)); }
std::string IntegerType(bool is_signed, unsigned bits) {
  return std::string(is_signed ? "s" : "u").append(std::to_string(bits));
}

// Of a conversion from or to f32.
std::string FlushFlag(const MachineInstruction& instruction) {
  return FlushesToZero(instruction) ? ".ftz" : "";
}

// ".rni" and so on: to a whole number.
std::string WholeRounding(const MachineInstruction& instruction) {
  return std::string(RoundingOf(instruction)) + "i";
}

// Reads half a register: a 16-bit float in the lower bits.
Value ReadHalf(Emitter& to, const SourceOperand& source) {
  constexpr unsigned kUpper = 1;
  if (source.half > kUpper) to.Unsupported("of a part that is not known");
  Value value = to.Read(source);
  if (source.half == kUpper) value = to.Compute(Width::k32, "shr.u32 ?, ?, 16", {value});
  if (source.absolute) value = to.Compute(Width::k32, "and.b32 ?, ?, 0x7fff", {value});
  if (source.negated) value = to.Compute(Width::k32, "xor.b32 ?, ?, 0x8000", {value});
  return value;
}

// Reads a float of `bits` bits, with modifiers.
Value ReadFloatOf(Emitter& to, const SourceOperand& source, unsigned bits) {
  switch (bits) {
    case 16:
      return ReadHalf(to, source);
    case 32:
      return ReadFloat(to, source);
    case 64:
      return ReadDouble(to, source);
    default:
      to.Unsupported("of a number of 8 bits");
      return Emitter::Number(0);
  }
}

// Extends an integer of `bits` bits, at most 32; `source.half` selects the part of the register.
Value ReadPart(Emitter& to, const SourceOperand& source, bool is_signed, unsigned bits) {
  if (bits == 32) return to.Read(source);
  const std::uint64_t first = std::uint64_t{source.half} * bits;
  if (first >= 32) to.Unsupported("of a part that is not known");
  return to.Compute(
      Width::k32, "bfe." + IntegerType(is_signed, 32) + " ?, ?, ?, ?",
      {to.Read(source), Emitter::Number(static_cast<std::int64_t>(first)), Emitter::Number(bits)});
}

// The destination of a result with `bits` bits.
Value WriteOf(Emitter& to, const MachineInstruction& instruction, unsigned bits) {
  return bits == 64 ? to.WritePair(instruction.destination()) : to.Write(instruction.destination());
}

}  // namespace

void LiftF2f(Emitter& to, const MachineInstruction& instruction) {
  const unsigned from = SourceBits(instruction);
  const unsigned bits = ResultBits(instruction);
  if (from == bits || bits == 8) return to.Unsupported("to a type that is not known");
  const Value source = ReadFloatOf(to, instruction.b(), from);
  const std::string rounding(from > bits ? RoundingOf(instruction) : "");
  const std::string flush = from == 16 || bits == 16 ? "" : FlushFlag(instruction);
  to.Emit("cvt" + rounding + flush + "." + FloatType(bits) + "." + FloatType(from) + " ?, ?",
          {WriteOf(to, instruction, bits), source});
}

void LiftFrnd(Emitter& to, const MachineInstruction& instruction) {
  const unsigned bits = SourceBits(instruction);
  if (bits != ResultBits(instruction)) return to.Unsupported("to another type");
  const Value source = ReadFloatOf(to, instruction.b(), bits);
  const std::string flush = bits == 32 ? FlushFlag(instruction) : "";
  const std::string type = FloatType(bits);
  to.Emit("cvt" + WholeRounding(instruction) + flush + "." + type + "." + type + " ?, ?",
          {WriteOf(to, instruction, bits), source});
}

void LiftF2i(Emitter& to, const MachineInstruction& instruction) {
  const unsigned from = SourceBits(instruction);
  const unsigned bits = ResultBits(instruction);
  // NaN becomes 0, or the lowest 64-bit integer, as in PTX.
  const bool nan_is_zero = instruction.Bit(77);
  const bool is_wide = from == 64 || bits == 64;
  if (nan_is_zero == is_wide) return to.Unsupported("with another result for what is no number");
  const Value source = ReadFloatOf(to, instruction.b(), from);
  const std::string flush = from == 32 ? FlushFlag(instruction) : "";
  to.Emit("cvt" + WholeRounding(instruction) + flush + "." +
              IntegerType(instruction.Bit(72), bits) + "." + FloatType(from) + " ?, ?",
          {WriteOf(to, instruction, bits), source});
}

void LiftI2f(Emitter& to, const MachineInstruction& instruction) {
  const unsigned from = SourceBits(instruction);
  const unsigned bits = ResultBits(instruction);
  const bool is_signed = instruction.Bit(74);
  if (bits == 8) return to.Unsupported("to a number of 8 bits");
  const Value source =
      from == 64 ? to.ReadPair(instruction.b()) : ReadPart(to, instruction.b(), is_signed, from);
  to.Emit("cvt" + std::string(RoundingOf(instruction)) + "." + FloatType(bits) + "." +
              IntegerType(is_signed, from == 64 ? 64 : 32) + " ?, ?",
          {WriteOf(to, instruction, bits), source});
}

// Narrows by saturation.
void LiftI2i(Emitter& to, const MachineInstruction& instruction) {
  const unsigned bits = instruction.Bit(77) ? 16 : 8;
  to.Emit("cvt.sat." + IntegerType(instruction.Bit(76), bits) + ".s32 ?, ?",
          {to.Write(instruction.destination()), to.Read(instruction.b())});
}

}  // namespace torpor::sass
