#include "emulator/sass/address.h"

namespace torpor::sass {
namespace {

// The signed offset of memory instructions with a known space.
std::int64_t OffsetOf(const MachineInstruction& instruction) {
  return instruction.SignedBits(40, 24);
}

// Whether the address has a uniform register as its base.
bool HasUniform(const MachineInstruction& instruction) { return instruction.Bit(91); }

// The 32-bit sum of the registers of an access of shared or local memory; RZ's is nothing.
std::optional<Value> Word(Emitter& to, const MachineInstruction& instruction, unsigned uniform) {
  const Register reg = instruction.ThreadRegisterAt(24);
  std::optional<Value> sum;
  if (!reg.is_fixed()) {
    sum = to.Read(reg);
    constexpr unsigned kShifts[] = {0, 2, 3, 4};  // X1, X4, X8, X16
    if (const unsigned shift = kShifts[instruction.Bits(78, 2)]; shift != 0) {
      sum = to.Compute(Width::k32, "shl.b32 ?, ?, ?", {*sum, Emitter::Number(shift)});
    }
  }
  if (!HasUniform(instruction)) return sum;
  const Value more = to.Read(instruction.UniformRegisterAt(uniform));
  return sum ? to.Compute(Width::k32, "add.s32 ?, ?, ?", {*sum, more}) : more;
}

// A 64-bit address in registers.
Value Pointer(Emitter& to, const Register& reg) {
  return reg.is_fixed() ? to.Compute(Width::k64, "mov.u64 ?, 0", {}) : to.ReadPair(reg);
}

}  // namespace

// Returns the text of an address with a base and `offset`.
std::string Bracketed(std::int64_t offset) {
  if (offset == 0) return "[?]";
  return (offset < 0 ? "[?-" : "[?+") + std::to_string(offset < 0 ? -offset : offset) + "]";
}

Address GlobalAddress(Emitter& to, const MachineInstruction& instruction, unsigned uniform) {
  const Register reg = instruction.ThreadRegisterAt(24);
  const std::string text = Bracketed(OffsetOf(instruction));
  const auto narrow = [&] { return to.Compute(Width::k64, "cvt.u64.u32 ?, ?", {to.Read(reg)}); };
  if (!HasUniform(instruction)) {
    return {text, instruction.Bit(72) ? Pointer(to, reg) : narrow()};
  }
  const Value base = Pointer(to, instruction.UniformRegisterAt(uniform));
  if (reg.is_fixed()) return {text, base};
  const Value index = instruction.Bit(90) ? to.ReadPair(reg) : narrow();
  return {text, to.Compute(Width::k64, "add.s64 ?, ?, ?", {index, base})};
}

// Without .E, the address is 32 bits wide.
Address GenericAddress(Emitter& to, const MachineInstruction& instruction) {
  const Register reg = instruction.ThreadRegisterAt(24);
  return {Bracketed(instruction.SignedBits(32, 32)),
          instruction.Bit(72) ? Pointer(to, reg)
                              : to.Compute(Width::k64, "cvt.u64.u32 ?, ?", {to.Read(reg)})};
}

Address SharedAddress(Emitter& to, const MachineInstruction& instruction, unsigned uniform) {
  to.UseShared();
  const std::optional<Value> base = Word(to, instruction, uniform);
  const std::int64_t offset = OffsetOf(instruction);
  if (!base) return {std::string("[").append(std::to_string(offset & 0xffffff)).append("]"), {}};
  return {Bracketed(offset), base};
}

Address LocalAddress(Emitter& to, const MachineInstruction& instruction, unsigned uniform) {
  const std::optional<Value> word = Word(to, instruction, uniform);
  const Value base = to.LocalBase();
  const std::string text = Bracketed(OffsetOf(instruction));
  if (!word) return {text, base};
  const Value extended = to.Compute(Width::k64, "cvt.s64.s32 ?, ?", {*word});
  return {text, to.Compute(Width::k64, "add.s64 ?, ?, ?", {extended, base})};
}

}  // namespace torpor::sass
