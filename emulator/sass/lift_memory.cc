// Loads and stores.
#include "emulator/sass/address.h"
#include "emulator/sass/opcodes.h"

namespace torpor::sass {
namespace {

// Size and type of an access, bits 73 to 75.
struct Access {
  std::string_view type;  // in PTX
  unsigned registers = 1;
};

// The size and the type of an access.
Access AccessOf(const MachineInstruction& instruction) {
  constexpr Access kAccesses[] = {{"u8"},  {"s8"},     {"u16"},    {"s16"},
                                  {"b32"}, {"b64", 2}, {"b32", 4}, {"b32", 4}};
  return kAccesses[instruction.Bits(73, 3)];
}

// `from` is "ld.global." and so on.
void Load(Emitter& to, const MachineInstruction& instruction, const std::string& from,
          const Register& target, const Address& address) {
  const Access access = AccessOf(instruction);
  std::vector<Value> values;
  std::string format = from;
  if (access.registers == 4) {
    format += "v4.b32 {?, ?, ?, ?}, ";
    for (unsigned i = 0; i < 4; ++i) values.push_back(to.Write(target.Next(i)));
  } else {
    format += std::string(access.type) + " ?, ";
    values.push_back(access.registers == 2 ? to.WritePair(target) : to.Write(target));
  }
  if (address.base) values.push_back(*address.base);
  to.Emit(format + address.text, std::move(values));
}

// Stores a register, a pair, or a vector of four registers.
void Store(Emitter& to, const MachineInstruction& instruction, const std::string& into,
           const Address& address, const Register& source) {
  const Access access = AccessOf(instruction);
  std::vector<Value> values;
  if (address.base) values.push_back(*address.base);
  std::string format = into;
  if (access.registers == 4) {
    format += "v4.b32 " + address.text + ", {?, ?, ?, ?}";
    for (unsigned i = 0; i < 4; ++i) values.push_back(to.Read(source.Next(i)));
  } else {
    format += std::string(access.type) + " " + address.text + ", ?";
    values.push_back(access.registers == 2 ? to.ReadPair(source) : to.Read(source));
  }
  to.Emit(format, std::move(values));
}

// Whether other threads may access the memory concurrently: .STRONG and .MMIO.
std::string Order(const MachineInstruction& instruction) {
  return instruction.Bits(79, 2) >= 2 ? "volatile." : "";
}

constexpr unsigned kLoadUniform = 32;
constexpr unsigned kStoreUniform = 64;
constexpr unsigned kHasUniform = 91;

// The address of LD and ST; with a uniform register their form is as in LDG and STG.
Address GenericOrUniformAddress(Emitter& to, const MachineInstruction& instruction,
                                unsigned uniform) {
  return instruction.Bit(kHasUniform) ? GlobalAddress(to, instruction, uniform)
                                      : GenericAddress(to, instruction);
}

// c[bank][reg + offset].
void LoadConstant(Emitter& to, const MachineInstruction& instruction, const Register& target,
                  bool has_index) {
  const auto bank = static_cast<std::uint32_t>(instruction.Bits(54, 5));
  const auto offset = static_cast<std::uint32_t>(instruction.Bits(38, 16));
  const Register index = instruction.RegisterAt(24);
  if (instruction.Bit(91) && !instruction.is_uniform()) {
    return to.Unsupported("with a constant bank that a register names");
  }
  const bool is_known = !has_index || index.is_fixed();
  const Access access = AccessOf(instruction);
  if (is_known && access.registers == 2) {
    return to.Emit("mov.b64 ?, ?", {to.WritePair(target), to.Constant(bank, offset, Width::k64)});
  }
  if (is_known && access.type == "b32") return to.Move(target, to.Constant(bank, offset));
  if (is_known) {
    // A part of a word.
    const Value word = to.Constant(bank, offset / 4 * 4);
    const unsigned bits = access.type.ends_with("8") ? 8 : 16;
    const std::string_view format =
        access.type.front() == 's' ? "bfe.s32 ?, ?, ?, ?" : "bfe.u32 ?, ?, ?, ?";
    return to.Emit(format, {to.Write(target), word, Emitter::Number(std::int64_t{offset % 4} * 8),
                            Emitter::Number(bits)});
  }
  if (instruction.Bits(78, 2) != 0) return to.Unsupported("with a mode of its index");
  const ConstantBank base = to.BankAddress(bank);
  const Value extended = to.Compute(Width::k64, "cvt.s64.s32 ?, ?", {to.Read(index)});
  const Address address = {Bracketed(std::int64_t{offset} - base.first),
                           to.Compute(Width::k64, "add.s64 ?, ?, ?", {extended, base.address})};
  Load(to, instruction, std::string(base.load), target, address);
}

}  // namespace

// Global memory, by a register, or by a uniform base with an offset.
void LiftLdg(Emitter& to, const MachineInstruction& instruction) {
  Load(to, instruction, "ld." + Order(instruction) + "global.", instruction.destination(),
       GlobalAddress(to, instruction, kLoadUniform));
}

void LiftStg(Emitter& to, const MachineInstruction& instruction) {
  Store(to, instruction, "st." + Order(instruction) + "global.",
        GlobalAddress(to, instruction, kStoreUniform), instruction.ThreadRegisterAt(32));
}

// Generic memory.
void LiftLd(Emitter& to, const MachineInstruction& instruction) {
  Load(to, instruction, "ld." + Order(instruction), instruction.destination(),
       GenericOrUniformAddress(to, instruction, kLoadUniform));
}

// The stored register takes the place of the uniform register, unless there is one.
void LiftSt(Emitter& to, const MachineInstruction& instruction) {
  const unsigned source = instruction.Bit(kHasUniform) ? 32 : 64;
  Store(to, instruction, "st." + Order(instruction),
        GenericOrUniformAddress(to, instruction, kStoreUniform),
        instruction.ThreadRegisterAt(source));
}

void LiftLds(Emitter& to, const MachineInstruction& instruction) {
  Load(to, instruction, "ld.shared.", instruction.destination(),
       SharedAddress(to, instruction, kLoadUniform));
}

void LiftSts(Emitter& to, const MachineInstruction& instruction) {
  Store(to, instruction, "st.shared.", SharedAddress(to, instruction, kStoreUniform),
        instruction.ThreadRegisterAt(32));
}

// Local memory: addresses are offsets from the thread's own base.
void LiftLdl(Emitter& to, const MachineInstruction& instruction) {
  Load(to, instruction, "ld.local.", instruction.destination(),
       LocalAddress(to, instruction, kLoadUniform));
}

void LiftStl(Emitter& to, const MachineInstruction& instruction) {
  Store(to, instruction, "st.local.", LocalAddress(to, instruction, kStoreUniform),
        instruction.ThreadRegisterAt(32));
}

// A word of a constant bank at an offset that may be in a register.
void LiftLdc(Emitter& to, const MachineInstruction& instruction) {
  LoadConstant(to, instruction, instruction.destination(), true);
}

// As LiftLdc, into uniform registers.
void LiftUldc(Emitter& to, const MachineInstruction& instruction) {
  LoadConstant(to, instruction, instruction.destination(), false);
}

// The scope of the fence decides how far its effect reaches.
void LiftMembar(Emitter& to, const MachineInstruction& instruction) {
  constexpr std::string_view kScopes[] = {"membar.cta", "membar.gl",  "membar.gl",  "membar.sys",
                                          "membar.sys", "membar.sys", "membar.sys", "membar.sys"};
  to.Emit(kScopes[instruction.Bits(76, 3)], {});
}

// Whether a generic address is in a space.
void LiftQspc(Emitter& to, const MachineInstruction& instruction) {
  constexpr std::string_view kSpaces[] = {"global", "local", "shared", ""};
  const std::string space(kSpaces[instruction.Bits(73, 2)]);
  if (space.empty()) return to.Unsupported("of a space that is not known");
  const Address address = GlobalAddress(to, instruction, kStoreUniform);
  const Value inside =
      to.Compute(Width::kPredicate, "isspacep." + space + " ?, ?", {*address.base});
  to.Emit("selp.b32 ?, 1, 0, ?", {to.Write(instruction.destination()), inside});
  to.Move(instruction.PredicateAt(81), inside);
}

}  // namespace torpor::sass
