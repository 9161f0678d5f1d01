#pragma once

#include <cstdint>

// One machine instruction of sm_70 and later: 128 bits, whose fields are in the same places for
// nearly all opcodes.
namespace torpor::sass {

// The registers of a thread, and those of a warp ("uniform"), by one number.
enum class RegisterFile : std::uint8_t { kRegister, kUniform, kPredicate, kUniformPredicate };

struct Register {
  RegisterFile file = RegisterFile::kRegister;
  std::uint8_t number = 0;

  static constexpr std::uint8_t kZero = 255;        // RZ
  static constexpr std::uint8_t kUniformZero = 63;  // URZ
  static constexpr std::uint8_t kTrue = 7;          // PT, UPT

  // RZ, URZ, PT, UPT: read as a constant, and lose what is written to them.
  bool is_fixed() const;
  bool is_predicate() const {
    return file == RegisterFile::kPredicate || file == RegisterFile::kUniformPredicate;
  }
  // The register behind it, of a pair or a vector; RZ's is RZ.
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

// One of the up to three sources of an arithmetic instruction. `negated` and `absolute` are the
// bits that floating-point instructions have there; others use the same bits for other things.
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

struct Instruction {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::uint64_t offset = 0;  // in its text

  // Bits [first, first + count), count up to 64.
  std::uint64_t Bits(unsigned first, unsigned count) const;
  std::int64_t SignedBits(unsigned first, unsigned count) const;
  bool Bit(unsigned bit) const { return Bits(bit, 1) != 0; }

  unsigned opcode() const { return static_cast<unsigned>(Bits(0, 9)); }
  unsigned form() const { return static_cast<unsigned>(Bits(9, 3)); }
  // Whether its registers and its guard are those of the warp.
  bool is_uniform() const;

  PredicateOperand guard() const;
  Register destination() const { return RegisterAt(16); }
  Register RegisterAt(unsigned first) const;         // of the file of its operands
  Register ThreadRegisterAt(unsigned first) const;   // of a thread
  Register UniformRegisterAt(unsigned first) const;  // of the warp
  Register PredicateAt(unsigned first) const;        // three bits
  PredicateOperand PredicateSourceAt(unsigned first, unsigned negation) const;

  // The sources of arithmetic instructions, in the order in which assembly shows them. An
  // instruction with two sources has them as a and b, or as a and c: the tables of the opcodes
  // know.
  SourceOperand a() const;
  SourceOperand b() const;
  SourceOperand c() const;

 private:
  SourceOperand RegisterSource(unsigned first) const;
  SourceOperand WideSource() const;    // of the bits 32 to 63, which may be any kind
  SourceOperand NarrowSource() const;  // of the bits 64 to 71, a register
};

// The instruction in 16 bytes of little endian.
Instruction Decode(const void* bytes, std::uint64_t offset);

}  // namespace torpor::sass
