#include "nvidia/machine_code/address_bank.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "nvidia/machine_code/instruction.h"
#include "nvidia/machine_code/opcode.h"

namespace torpor::sass {
namespace {

constexpr std::uint64_t kAddressBytes = 8;
constexpr unsigned kMaxRegisters = 4;  // that an instruction writes, one behind another
// Opcodes around calls that write a single register.
constexpr std::array<unsigned, 9> kWriteOne = {kMov, kSel,  kIadd3, kLea,     kLop3,
                                               kShf, kImad, kHfma2, kHfma2Mma};
// The low 16 bits of an unconditional MOV of a number to a register.
constexpr std::uint64_t kMoveNumber = 0x7802;

unsigned IndexRegister(const MachineInstruction& load) {
  return static_cast<unsigned>(load.Bits(24, 8));
}

// Whether the bank depends on registers.
bool MayReadAnyBank(const MachineInstruction& instruction) {
  if (instruction.opcode() == kLdc) return instruction.Bits(78, 2) != 0;
  return !instruction.is_uniform() && instruction.is_bindless();
}

// Whether a register is, or might be, added to the offset.
bool HasIndex(const MachineInstruction& instruction) {
  if (instruction.opcode() == kLdc) return IndexRegister(instruction) != Register::kZero;
  return instruction.is_uniform() &&
         (instruction.opcode() != kUldc || IndexRegister(instruction) != 0);
}

bool MovesNumberTo(unsigned reg, const MachineInstruction& instruction) {
  return instruction.Bits(0, 16) == kMoveNumber && instruction.Bits(16, 8) == reg;
}

bool MayWrite(unsigned reg, const MachineInstruction& instruction) {
  const unsigned opcode = instruction.opcode();
  if (instruction.is_uniform() || IsStore(opcode)) return false;
  // Texture fetches have a second target; products of warp groups have a large target.
  constexpr unsigned kFirstGroupProduct = 0x1e0;
  if (IsTexture(opcode) || opcode >= kFirstGroupProduct) return true;
  const bool writes_one = std::ranges::find(kWriteOne, opcode) != kWriteOne.end();
  const auto target = static_cast<unsigned>(instruction.Bits(16, 8));
  return target <= reg && reg - target < (writes_one ? 1 : kMaxRegisters);
}

// A call of a system function preserves all registers but those of a possible result: code that
// reads another register after the call means the value from before.
bool KeepsAcrossCall(unsigned reg, const MachineInstruction& instruction) {
  return instruction.opcode() == kCallAbsolute && (reg < 4 || reg > 15);
}

bool IsBranch(const MachineInstruction& instruction) {
  return IsControl(instruction.opcode()) && instruction.opcode() != kLepc;
}

bool IsIndirectBranch(const MachineInstruction& instruction) {
  return instruction.opcode() == kBrx || instruction.opcode() == kJmx;
}

class Code {
 public:
  explicit Code(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t size() const { return bytes_.size() / kInstructionBytes; }
  MachineInstruction operator[](std::size_t at) const {
    const std::size_t offset = at * kInstructionBytes;
    return Decode(bytes_.data() + offset, offset);
  }

  // Returns the number that the load at `at` adds to its offset, if one of the few instructions
  // before it plainly moves a number to the register.
  std::optional<std::uint64_t> IndexOf(std::size_t at) {
    const MachineInstruction load = (*this)[at];
    if (load.is_uniform()) return std::nullopt;
    const unsigned index = IndexRegister(load);
    FindTargets();
    while (at > 0 && !is_target_[at]) {
      const MachineInstruction before = (*this)[--at];
      if (KeepsAcrossCall(index, before)) continue;
      if (IsBranch(before)) break;
      if (MovesNumberTo(index, before)) return before.Bits(32, 32);
      if (MayWrite(index, before)) break;
    }
    return std::nullopt;
  }

 private:
  // Marks the instructions to which branches may go.
  void FindTargets() {
    if (!is_target_.empty()) return;
    is_target_.resize(size());
    for (std::size_t i = 0; i < size(); ++i) {
      const MachineInstruction instruction = (*this)[i];
      if (!IsBranch(instruction) || instruction.opcode() == kCallAbsolute) continue;
      // The tables of targets are elsewhere.
      if (IsIndirectBranch(instruction)) return is_target_.assign(size(), true);
      const std::uint64_t target = instruction.branch_target() / kInstructionBytes;
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
    const MachineInstruction instruction = code[i];
    if (!instruction.has_constant()) continue;
    if (MayReadAnyBank(instruction)) return true;
    if (instruction.constant_bank() != kAddressBank) continue;
    std::uint64_t begin = instruction.constant_offset();
    if (HasIndex(instruction)) {
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

}  // namespace torpor::sass
