#pragma once

#include "emulator/exec/codegen/builder/operand_builder.h"

namespace torpor::emulator {

// Participants and values of collective operations: shuffles, votes, reductions. Lanes that reach a
// converged operation at different times deposit values first; see ptx/collective.h.
class CollectiveBuilder {
 public:
  using Value = llvm::Value;
  using Instruction = ptx::Instruction;
  using Operand = ptx::Operand;

  // Allocates a slot for deposits, where `operands` builds, if the function has deposits.
  explicit CollectiveBuilder(OperandBuilder& operands);

  // Keeps the current lanes' first operand for the converged operation.
  void Deposit(const Instruction& instruction);
  // The slot of deposits; null without deposits.
  llvm::AllocaInst* deposits() const { return deposits_; }

  // Mask of the lanes that take part as far as the operation's members include the lanes.
  Value* Participants(const Instruction& instruction);
  // The operation's first source of all participants: 32 lanes.
  Value* Contribution(const Instruction& instruction, ptx::Type type);
  // The union of the member masks of `lanes`, as bits.
  Value* UnitedMembers(const Operand& members, Value* lanes);
  // Whether a member has not come to the current block; an i1.
  Value* IsOneElsewhere(const Operand& members);

 private:
  OperandBuilder& operands_;
  LaneBuilder& code_;
  BlockMasks& masks_;
  llvm::AllocaInst* deposits_ = nullptr;
};

}  // namespace torpor::emulator
