#include "server/executor/module/address_bank.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

namespace torpor::executor {
namespace {

constexpr std::size_t kInstructionBytes = 16;
constexpr std::uint64_t kAddressBytes = 8;
constexpr unsigned kNoRegister = 0xff;  // RZ
constexpr unsigned kMaxRegisters = 4;   // that an instruction writes, one behind another
// MOV, SEL, IADD3, LEA, LOP3, SHF, IMAD, HFMA2, HFMA2.MMA: those around calls that write one.
constexpr std::array<unsigned, 9> kWriteOne = {0x002, 0x007, 0x010, 0x011, 0x012,
                                               0x019, 0x024, 0x031, 0x035};
constexpr unsigned kCallAbsolute = 0x143;         // CALL.ABS
constexpr unsigned kLoadConstant = 0x182;         // LDC
constexpr unsigned kLoadUniformConstant = 0x0b9;  // ULDC
// An unconditional MOV of a number to a register, in the bits up to the register.
constexpr std::uint64_t kMoveNumber = 0x7802;

struct Instruction {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  unsigned opcode() const { return low & 0x1ff; }
  bool is_uniform() const { return opcode() >= 0x080 && opcode() < 0x0c0; }

  // What stands in the bits 32 to 63 is an operand c[bank][offset] in two of the eight forms.
  bool has_constant() const {
    const unsigned form = low >> 9 & 7;
    return form == 3 || form == 5;
  }
  unsigned bank() const { return low >> 54 & 0x1f; }
  std::uint64_t offset() const { return low >> 38 & 0xffff; }
  // The bank depends on registers.
  bool has_any_bank() const {
    if (opcode() == kLoadConstant) return (high >> 14 & 3) != 0;
    return !is_uniform() && (high >> 27 & 1) != 0;
  }
  // A register is added to the offset, or may be for all that is known here.
  bool has_index() const {
    if (opcode() == kLoadConstant) return index() != kNoRegister;
    return is_uniform() && (opcode() != kLoadUniformConstant || index() != 0);
  }
  unsigned index() const { return low >> 24 & 0xff; }

  bool MovesNumberTo(unsigned reg) const {
    return (low & 0xffff) == kMoveNumber && target() == reg;
  }
  std::uint64_t number() const { return low >> 32; }
  bool MayWrite(unsigned reg) const {
    const bool is_store = opcode() >= 0x185 && opcode() <= 0x188;  // ST, STG, STL, STS
    if (is_uniform() || is_store) return false;
    // Texture fetches have a second target, the products of groups of warps a large one.
    if ((opcode() >= 0x160 && opcode() < 0x170) || opcode() >= 0x1e0) return true;
    const bool writes_one = std::ranges::find(kWriteOne, opcode()) != kWriteOne.end();
    return target() <= reg && reg - target() < (writes_one ? 1 : kMaxRegisters);
  }
  unsigned target() const { return low >> 16 & 0xff; }

  // A call of a function of the system leaves registers alone but those in which it may return
  // something: code that reads another one behind it has the former value in mind.
  bool KeepsAcrossCall(unsigned reg) const {
    return opcode() == kCallAbsolute && (reg < 4 || reg > 15);
  }
  // Among such opcodes LEPC asks where it is.
  bool is_control() const { return opcode() >= 0x140 && opcode() < 0x160 && opcode() != 0x14e; }
  // By tables that are elsewhere.
  bool is_indirect_branch() const { return opcode() == 0x149 || opcode() == 0x14c; }
  // Of a branch, from the next instruction.
  std::int64_t distance() const {
    const std::uint64_t bits = low >> 34 | (high & 0x3ffff) << 30;
    return static_cast<std::int64_t>(bits << 16) >> 14;
  }
};

class Code {
 public:
  explicit Code(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t size() const { return bytes_.size() / kInstructionBytes; }
  Instruction operator[](std::size_t at) const {
    Instruction instruction;
    std::memcpy(&instruction, bytes_.data() + at * kInstructionBytes, sizeof instruction);
    return instruction;
  }

  // What the load at `at` adds to its offset, if one of the few instructions before it has plainly
  // put a number into the register.
  std::optional<std::uint64_t> IndexOf(std::size_t at) {
    const Instruction load = (*this)[at];
    if (load.is_uniform()) return std::nullopt;
    FindTargets();
    while (at > 0 && !is_target_[at]) {
      const Instruction before = (*this)[--at];
      if (before.KeepsAcrossCall(load.index())) continue;
      if (before.is_control()) break;
      if (before.MovesNumberTo(load.index())) return before.number();
      if (before.MayWrite(load.index())) break;
    }
    return std::nullopt;
  }

 private:
  // Where branches may go.
  void FindTargets() {
    if (!is_target_.empty()) return;
    is_target_.resize(size());
    for (std::size_t i = 0; i < size(); ++i) {
      const Instruction instruction = (*this)[i];
      if (!instruction.is_control() || instruction.opcode() == kCallAbsolute) continue;
      if (instruction.is_indirect_branch()) return is_target_.assign(size(), true);
      const std::int64_t next = static_cast<std::int64_t>((i + 1) * kInstructionBytes);
      const auto target =
          static_cast<std::uint64_t>(next + instruction.distance()) / kInstructionBytes;
      if (target < size()) is_target_[target] = true;
    }
  }

  const std::span<const std::byte> bytes_;
  std::vector<bool> is_target_;
};

bool AnyIn(std::span<const std::uint64_t> places, std::uint64_t begin, std::uint64_t end) {
  const auto place = std::ranges::lower_bound(places, begin - std::min(begin, kAddressBytes - 1));
  return place != places.end() && *place < end;
}

}  // namespace

bool MayReadAddress(std::span<const std::byte> bytes, std::span<const std::uint64_t> places) {
  Code code(bytes);
  for (std::size_t i = 0; i < code.size(); ++i) {
    const Instruction instruction = code[i];
    if (!instruction.has_constant()) continue;
    if (instruction.has_any_bank()) return true;
    if (instruction.bank() != kAddressBank) continue;
    std::uint64_t begin = instruction.offset();
    if (instruction.has_index()) {
      const auto index = code.IndexOf(i);
      if (!index) return true;
      begin += *index;
    }
    // Half an address, or a whole one.
    const std::uint64_t end = begin + (begin % kAddressBytes == 0 ? kAddressBytes : 4);
    if (AnyIn(places, begin, end)) return true;
  }
  return false;
}

}  // namespace torpor::executor
