#include "emulator/ptx/tile_loads.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "emulator/ptx/dataflow.h"

namespace torpor::ptx {
namespace {

// A real processor, too, loads parts that lie closer together as one.
constexpr std::uint64_t kPartBytes = 128;
constexpr unsigned kMaxChain = 32;

// Finds the parameter from which a chain of additions computes an address.
class PointerFinder {
 public:
  explicit PointerFinder(const Function& function)
      : function_(function), only_writes_(function.registers.size()) {
    std::vector<unsigned> writes(function.registers.size());
    for (const Instruction& instruction : function.instructions) {
      ForEachDefinition(function, instruction, [&](std::uint32_t reg) {
        only_writes_[reg] = ++writes[reg] == 1 ? &instruction : nullptr;
      });
    }
  }

  // Returns the parameter's variable, or kNoIndex.
  std::uint32_t ParameterOf(std::uint32_t reg, unsigned chain = 0) const {
    const Instruction* const write = only_writes_[reg];
    if (write == nullptr || BitWidth(write->type()) != 64 || chain == kMaxChain) return kNoIndex;
    const auto& operands = write->operands;
    if (write->opcode == Opcode::kLd && operands.size() == 2) {
      const std::uint32_t symbol = operands[1].symbol;
      return symbol != kNoIndex && function_.HasParameter(symbol) ? symbol : kNoIndex;
    }
    const bool passes_on = write->opcode == Opcode::kAdd || write->opcode == Opcode::kMov ||
                           write->opcode == Opcode::kCvta;
    for (std::size_t i = 1; passes_on && i < operands.size(); ++i) {
      if (operands[i].kind != Operand::Kind::kRegister) continue;
      const std::uint32_t found = ParameterOf(operands[i].reg, chain + 1);
      if (found != kNoIndex) return found;
    }
    return kNoIndex;
  }

 private:
  const Function& function_;
  std::vector<const Instruction*> only_writes_;
};

}  // namespace

// Groups the loads by the parameter they come from; a parameter counts if its loads are in several
// parts.
BitSet FindTileLoads(const Function& function, const ControlFlow& flow) {
  using Part = std::pair<std::uint32_t, std::uint64_t>;  // the register of the address, and where
  const PointerFinder finder(function);
  std::map<std::uint32_t, std::set<Part>> parts;  // of what a parameter points to
  std::map<std::uint32_t, std::vector<std::uint32_t>> loads;
  for (const BasicBlock& block : flow.blocks) {
    if (block.loop != kNoIndex) continue;
    for (std::uint32_t i = block.first; i < block.end; ++i) {
      const Instruction& instruction = function.instructions[i];
      const bool global = instruction.opcode == Opcode::kLd && instruction.operands.size() == 2 &&
                          instruction.space() == Space::kGlobal &&
                          instruction.operands[1].reg != kNoIndex;
      if (!global) continue;
      const Operand& address = instruction.operands[1];
      const std::uint32_t parameter = finder.ParameterOf(address.reg);
      if (parameter == kNoIndex) continue;
      parts[parameter].insert({address.reg, (address.bits + kPartBytes / 2) / kPartBytes});
      loads[parameter].push_back(i);
    }
  }
  BitSet result(function.instructions.size());
  for (const auto& [parameter, indices] : loads) {
    if (parts[parameter].size() < 2) continue;
    for (const std::uint32_t index : indices) result.Insert(index);
  }
  return result;
}

}  // namespace torpor::ptx
