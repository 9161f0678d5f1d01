#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/exec/codegen/builder/collective_builder.h"
#include "emulator/exec/codegen/builder/ended_lanes.h"
#include "emulator/exec/codegen/builder/local_stack.h"
#include "emulator/exec/codegen/builder/operand_builder.h"
#include "emulator/exec/codegen/builder/suspension.h"

namespace torpor::emulator {

// Ends the blocks of a function with branches and returns. Chooses the next block to run among all
// blocks with waiting lanes; see ptx/reconvergence.h.
class BranchBuilder {
 public:
  using Value = llvm::Value;
  using Instruction = ptx::Instruction;

  BranchBuilder(OperandBuilder& operands, CollectiveBuilder& collectives, Suspension& suspension,
                LocalStack& stack, EndedLanes& ended);

  // The call at the end of `block` in which threads may end, else null. Translate the call before
  // End.
  const Instruction* CallAtEnd(std::uint32_t block) const;
  // Ends `block`, the current block.
  void End(std::uint32_t block);

 private:
  void EndWarpBarrier(std::uint32_t block);
  Value* LanesOnTheirWay(const ptx::BitSet& blocks);
  Value* IsReady(std::uint32_t block, Value* on_their_way);
  void SendLanes(std::uint32_t from, const std::vector<std::pair<std::uint32_t, Value*>>& lanes);
  void RunNext(std::uint32_t from, const std::vector<std::uint32_t>& targets);
  llvm::BasicBlock* EdgeTo(std::uint32_t from, std::uint32_t to, const ptx::BitSet& waiting);
  void EndConditional(std::uint32_t block, const Instruction& branch);
  void EndConditionalExit(std::uint32_t block, const Instruction& branch);
  void EndCall(std::uint32_t block);
  void EndIndexed(std::uint32_t block, const Instruction& branch);
  void SendByIndex(std::uint32_t block, const Instruction& branch);
  void Return();

  OperandBuilder& operands_;
  LaneBuilder& code_;
  ContextBuilder& context_;
  BlockMasks& masks_;
  const FunctionSource& source_;
  CollectiveBuilder& collectives_;
  Suspension& suspension_;
  LocalStack& stack_;
  EndedLanes& ended_;
};

}  // namespace torpor::emulator
