#include "emulator/ptx/strided_loop.h"

#include "emulator/ptx/dataflow.h"

namespace torpor::ptx {
namespace {

// Returns the step of `add i, i, step`, or kNoIndex.
std::uint32_t StepOf(const Instruction& instruction) {
  const auto& operands = instruction.operands;
  const bool adds =
      instruction.opcode == Opcode::kAdd && !IsFloat(instruction.type()) && operands.size() == 3;
  if (!adds) return kNoIndex;
  for (const auto& operand : operands) {
    if (operand.kind != Operand::Kind::kRegister) return kNoIndex;
  }
  if (operands[0].reg == operands[1].reg) return operands[2].reg;
  return operands[0].reg == operands[2].reg ? operands[1].reg : kNoIndex;
}

// Calls visit(instruction) for all instructions of the loop at `header`, without terminators.
template <typename Visit>
void ForEachInstruction(const Function& function, const ControlFlow& flow, std::uint32_t header,
                        Visit visit) {
  for (std::uint32_t b = header; b < flow.blocks[header].loop_end; ++b) {
    for (std::uint32_t i = flow.blocks[b].first; i < flow.blocks[b].end; ++i) {
      visit(function.instructions[i]);
    }
  }
}

}  // namespace

// Looks for a global read, no barrier, and an index whose step is uniform and unchanged in the
// loop.
std::uint32_t StrideOfLoop(const Function& function, const ControlFlow& flow,
                           const LaneAnalysis& lanes, std::uint32_t header) {
  if (flow.blocks[header].loop != header || flow.blocks[header].spins) return kNoIndex;
  bool reads = false;
  bool waits = false;
  std::uint32_t stride = kNoIndex;
  BitSet written(function.registers.size());
  ForEachInstruction(function, flow, header, [&](const Instruction& instruction) {
    ForEachDefinition(function, instruction, [&](std::uint32_t reg) { written.Insert(reg); });
    waits |= instruction.is_barrier();
    reads |= instruction.opcode == Opcode::kLd && instruction.space() == Space::kGlobal;
  });
  ForEachInstruction(function, flow, header, [&](const Instruction& instruction) {
    const std::uint32_t step = StepOf(instruction);
    if (step == kNoIndex || written.Contains(step) || !lanes.shape(step).uniform()) return;
    stride = step;
  });
  return reads && !waits ? stride : kNoIndex;
}

}  // namespace torpor::ptx
