// Matrices, with elements spread over the lanes as in PTX's mma.sync.
#include <string>
#include <utility>
#include <vector>

#include "emulator/sass/address.h"
#include "emulator/sass/opcodes.h"

namespace torpor::sass {
namespace {

// Registers of the fragments of a product.
struct Fragments {
  unsigned a = 1;  // registers
  unsigned b = 1;
  unsigned c = 2;
};

// Appends a vector of placeholders.
void AppendFragment(std::string& format, unsigned registers) {
  format += format.ends_with(" ") ? "{" : ", {";
  for (unsigned i = 0; i < registers; ++i) format += i == 0 ? "?" : ", ?";
  format += "}";
}

// Emits PTX's mma.sync: fragments of both machines hold the same elements.
void EmitProduct(Emitter& to, const MachineInstruction& instruction, const std::string& name,
                 const Fragments& fragments) {
  std::string format = name + " ";
  for (const unsigned registers : {fragments.c, fragments.a, fragments.b, fragments.c}) {
    AppendFragment(format, registers);
  }
  std::vector<Value> values;
  values.reserve(std::size_t{2} * fragments.c + fragments.a + fragments.b);
  for (unsigned i = 0; i < fragments.c; ++i) {
    values.push_back(to.Write(instruction.destination().Next(i)));
  }
  const auto read = [&](unsigned first, unsigned registers) {
    const Register reg = instruction.ThreadRegisterAt(first);
    for (unsigned i = 0; i < registers; ++i) values.push_back(to.Read(reg.Next(i)));
  };
  read(24, fragments.a);
  read(32, fragments.b);
  read(64, fragments.c);
  to.Emit(format, std::move(values));
}

// Refuses products with operands outside registers.
bool HasOtherForm(Emitter& to, const MachineInstruction& instruction) {
  if (instruction.form() == 1) return false;
  to.Unsupported("with sources that are no registers");
  return true;
}

}  // namespace

// Products of halves, of shape 16x8x8.
void LiftHmma(Emitter& to, const MachineInstruction& instruction) {
  if (HasOtherForm(to, instruction)) return;
  const bool is_negated = instruction.Bit(63) || instruction.Bit(72);
  const bool has_other_shape = instruction.Bit(75) || instruction.Bit(78);
  if (is_negated || has_other_shape || instruction.Bit(77) || instruction.Bits(82, 2) != 0) {
    return to.Unsupported("of another kind than .1688");
  }
  const std::string sum = instruction.Bit(76) ? "f32" : "f16";
  EmitProduct(to, instruction, "mma.sync.aligned.m16n8k8.row.col." + sum + ".f16.f16." + sum,
              {.a = 2, .b = 1, .c = instruction.Bit(76) ? 4U : 2U});
}

// Products of 8-bit and 4-bit integers.
void LiftImma(Emitter& to, const MachineInstruction& instruction) {
  if (HasOtherForm(to, instruction)) return;
  const bool a_is_short = instruction.Bit(83);
  const bool b_is_short = instruction.Bit(84);
  const bool is_long = instruction.Bit(85);  // .8832
  const bool is_row_column = !instruction.Bit(73) && instruction.Bit(74);
  if (a_is_short != is_long || b_is_short != is_long || instruction.Bit(75) || !is_row_column) {
    return to.Unsupported("of another kind than .8816 and .8832");
  }
  const std::string width = is_long ? "4" : "8";
  const auto type = [&](unsigned bit) { return (instruction.Bit(bit) ? ".s" : ".u") + width; };
  EmitProduct(to, instruction,
              std::string("mma.sync.aligned.m8n8k") + (is_long ? "32" : "16") + ".row.col" +
                  (instruction.Bit(82) ? ".satfinite" : "") + ".s32" + type(76) + type(78) + ".s32",
              {});
}

// Products of bits.
void LiftBmma(Emitter& to, const MachineInstruction& instruction) {
  if (HasOtherForm(to, instruction)) return;
  const bool is_xor_popc = instruction.Bits(75, 6) == 0b100000;
  const bool is_row_column = !instruction.Bit(73) && instruction.Bit(74);
  if (!is_xor_popc || !is_row_column) return to.Unsupported("of another kind than .88128.XOR");
  EmitProduct(to, instruction, "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc", {});
}

// Loads matrices of 8 rows; eight lanes hold the row addresses of each matrix.
void LiftLdsm(Emitter& to, const MachineInstruction& instruction) {
  constexpr unsigned kUniform = 32;
  constexpr unsigned kMaxMatrices = 4;
  constexpr unsigned kTransposed = 78;
  const unsigned matrices = 1U << static_cast<unsigned>(instruction.Bits(72, 2));
  if (matrices > kMaxMatrices || instruction.Bit(79) || instruction.Bits(75, 3) != 0) {
    return to.Unsupported("of another kind than .16.M88");
  }
  MachineInstruction plain =
      instruction;  // whose address other loads could scale, by the bit of .MT88
  plain.high &= ~(std::uint64_t{1} << (kTransposed - 64));
  const Address address = SharedAddress(to, plain, kUniform);
  std::string format = "ldmatrix.sync.aligned.m8n8.x" + std::to_string(matrices) +
                       (instruction.Bit(kTransposed) ? ".trans" : "") + ".shared.b16 ";
  AppendFragment(format, matrices);
  std::vector<Value> values;
  values.reserve(matrices + 1);
  for (unsigned i = 0; i < matrices; ++i) {
    values.push_back(to.Write(instruction.destination().Next(i)));
  }
  if (address.base) values.push_back(*address.base);
  to.Emit(format + ", " + address.text, std::move(values));
}

}  // namespace torpor::sass
