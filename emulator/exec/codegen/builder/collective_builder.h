#pragma once

#include "emulator/exec/codegen/builder/operand_builder.h"

namespace torpor::emulator {

// Operations that the lanes of a warp do together, wherever they are: who takes part, and with
// which values. Lanes that come to a converged operation one after the other deposit their values;
// see ptx/collective.h.
class CollectiveBuilder {
 public:
  using Value = llvm::Value;
  using Instruction = ptx::Instruction;
  using Operand = ptx::Operand;

  // Allocates a slot for deposits where `operands` builds, if the function needs one.
  explicit CollectiveBuilder(OperandBuilder& operands);

  // Keeps the current lanes' first operand for the converged operation.
  void Deposit(const Instruction& instruction);
  // The slot of deposits; null if the function needs none.
  llvm::AllocaInst* deposits() const { return deposits_; }

  // Mask of the lanes that take part if they are members.
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
