#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

// One machine instruction of sm_70 or later: 128 bits, with most fields in the same bits for nearly
// all opcodes.
namespace torpor::sass {

inline constexpr std::size_t kInstructionBytes = 16;

// Registers of a thread, and "uniform" registers of a warp, by number.
enum class RegisterFile : std::uint8_t { kRegister, kUniform, kPredicate, kUniformPredicate };

struct Register {
  RegisterFile file = RegisterFile::kRegister;
  std::uint8_t number = 0;

  static constexpr std::uint8_t kZero = 255;        // RZ
  static constexpr std::uint8_t kUniformZero = 63;  // URZ
  static constexpr std::uint8_t kTrue = 7;          // PT, UPT

  // RZ, URZ, PT, UPT: constants; writes are dropped.
  bool is_fixed() const;
  bool is_predicate() const {
    return file == RegisterFile::kPredicate || file == RegisterFile::kUniformPredicate;
  }
  // Returns the next register of a pair or a vector; RZ for RZ.
  Register Next(unsigned by = 1) const;
  bool operator==(const Register&) const = default;
};

// A predicate as an operand.
struct PredicateOperand {
  Register reg{RegisterFile::kPredicate, Register::kTrue};
  bool negated = false;

  bool always() const { return reg.is_fixed() && !negated; }
  bool never() const { return reg.is_fixed() && negated; }
};

// One of up to three sources of an arithmetic instruction. `negated` and `absolute` are modifiers
// of floating-point instructions; other instructions use the same bits otherwise.
struct SourceOperand {
  enum class Kind : std::uint8_t {
    kRegister,
    kImmediate,
    kConstant,          // c[bank][offset]
    kBindlessConstant,  // cx[reg][offset]
  };
  Kind kind = Kind::kRegister;
  Register reg{};
  std::uint32_t immediate = 0;
  std::uint32_t bank = 0;
  std::uint32_t offset = 0;  // in bytes
  bool negated = false;
  bool absolute = false;
  unsigned half = 0;  // of packed halves: bits 60-61, 74-75 or 81-82, as the source has it

  bool is_zero() const {
    return kind == Kind::kRegister ? reg.is_fixed() : kind == Kind::kImmediate && immediate == 0;
  }
};

// The forms of arithmetic instructions: the kind of operand in bits 32 to 63, and its source.
enum Form : unsigned {
  kRegisters = 1,
  kImmediateC = 2,
  kConstantC = 3,
  kImmediateB = 4,
  kConstantB = 5,
  kUniformB = 6,
  kUniformC = 7,
};

struct MachineInstruction {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::uint64_t offset = 0;  // in its text

  // Bits [first, first + count), count up to 64.
  constexpr std::uint64_t Bits(unsigned first, unsigned count) const {
    std::uint64_t value = 0;
    if (first >= 64) {
      value = high >> (first - 64);
    } else {
      value = low >> first;
      if (first != 0) value |= high << (64 - first);
    }
    return count >= 64 ? value : value & ((std::uint64_t{1} << count) - 1);
  }
  constexpr std::int64_t SignedBits(unsigned first, unsigned count) const {
    const std::uint64_t sign = std::uint64_t{1} << (count - 1);
    return static_cast<std::int64_t>((Bits(first, count) ^ sign) - sign);
  }
  constexpr bool Bit(unsigned bit) const { return Bits(bit, 1) != 0; }

  constexpr unsigned opcode() const { return static_cast<unsigned>(Bits(0, 9)); }
  constexpr unsigned form() const { return static_cast<unsigned>(Bits(9, 3)); }
  // Whether registers and guard belong to the warp.
  constexpr bool is_uniform() const { return opcode() >= 0x080 && opcode() < 0x0c0; }

  // Whether bits 32 to 63 hold an operand c[bank][offset], and its parts.
  constexpr bool has_constant() const { return form() == kConstantB || form() == kConstantC; }
  constexpr unsigned constant_bank() const { return static_cast<unsigned>(Bits(54, 5)); }
  constexpr unsigned constant_offset() const { return static_cast<unsigned>(Bits(38, 16)); }
  // Whether the bank of an arithmetic instruction's constant comes from a register:
  // cx[reg][offset].
  constexpr bool is_bindless() const { return Bit(91); }

  // The offset, in the same text, to which a relative branch or call goes.
  constexpr std::uint64_t branch_target() const {
    return offset + kInstructionBytes + static_cast<std::uint64_t>(SignedBits(34, 48)) * 4;
  }

  PredicateOperand guard() const;
  Register destination() const { return RegisterAt(16); }
  Register RegisterAt(unsigned first) const;         // of the file of its operands
  Register ThreadRegisterAt(unsigned first) const;   // of a thread
  Register UniformRegisterAt(unsigned first) const;  // of the warp
  Register PredicateAt(unsigned first) const;        // three bits
  PredicateOperand PredicateSourceAt(unsigned first, unsigned negation) const;

  // The sources of arithmetic instructions, in the order of assembly. An instruction with two
  // sources has a and b, or a and c, depending on the opcode.
  SourceOperand a() const;
  SourceOperand b() const;
  SourceOperand c() const;

 private:
  SourceOperand RegisterSource(unsigned first) const;
  SourceOperand WideSource() const;    // of the bits 32 to 63, which may be any kind
  SourceOperand NarrowSource() const;  // of the bits 64 to 71, a register
};

// Decodes 16 bytes, little-endian; `offset` is the instruction's offset in its text.
inline MachineInstruction Decode(const void* bytes, std::uint64_t offset) {
  MachineInstruction instruction;
  std::memcpy(&instruction.low, bytes, 8);
  std::memcpy(&instruction.high, static_cast<const char*>(bytes) + 8, 8);
  instruction.offset = offset;
  return instruction;
}

}  // namespace torpor::sass
