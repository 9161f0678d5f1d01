#include "emulator/ptx/liveness.h"

#include "emulator/ptx/dataflow.h"

namespace torpor::ptx {
namespace {

// A guarded write keeps the old value of some lanes, so the register stays alive.
void StepBack(const Function& function, const Instruction& instruction, BitSet& live) {
  if (instruction.guard == kNoIndex) {
    ForEachDefinition(function, instruction, [&](std::uint32_t reg) { live.Erase(reg); });
  } else {
    ForEachDefinition(function, instruction, [&](std::uint32_t reg) { live.Insert(reg); });
  }
  ForEachUse(function, instruction, [&](std::uint32_t reg) { live.Insert(reg); });
}

}  // namespace

// Iterates backwards over the blocks until nothing changes.
std::vector<BitSet> LiveAtEntry(const Function& function, const ControlFlow& flow) {
  std::vector<BitSet> live(flow.blocks.size(), BitSet(function.registers.size()));
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t b = flow.blocks.size(); b-- > 0;) {
      const BasicBlock& block = flow.blocks[b];
      BitSet state(function.registers.size());
      for (const std::uint32_t target : block.successors) state.UniteWith(live[target]);
      if (block.branch != kNoIndex) {
        StepBack(function, function.instructions[block.branch], state);
      }
      for (std::uint32_t i = block.end; i-- > block.first;) {
        StepBack(function, function.instructions[i], state);
      }
      changed |= live[b].UniteWith(state);
    }
  }
  return live;
}

}  // namespace torpor::ptx
