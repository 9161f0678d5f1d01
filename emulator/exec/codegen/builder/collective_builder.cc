#include "emulator/exec/codegen/builder/collective_builder.h"

#include <algorithm>

namespace torpor::emulator {

CollectiveBuilder::CollectiveBuilder(OperandBuilder& operands)
    : operands_(operands), code_(operands.code()), masks_(operands.masks()) {
  const auto& instructions = operands_.source().function.instructions;
  const bool needed = std::any_of(
      instructions.begin(), instructions.end(),
      [](const Instruction& instruction) { return instruction.opcode == ptx::Opcode::kDeposit; });
  if (needed) deposits_ = code_->CreateAlloca(Lanes(code_->getInt64Ty()));
}

void CollectiveBuilder::Deposit(const Instruction& instruction) {
  Value* value = code_.Resize(
      code_.ToInt(operands_.ReadVector(instruction.operands[0], instruction.type())), 64, false);
  Value* others = code_->CreateLoad(value->getType(), deposits_);
  code_->CreateStore(code_->CreateSelect(masks_.mask(), value, others), deposits_);
}

llvm::Value* CollectiveBuilder::Participants(const Instruction& instruction) {
  return instruction.converged ? code_.BitsToMask(masks_.Live()) : masks_.Active(instruction);
}

llvm::Value* CollectiveBuilder::Contribution(const Instruction& instruction, ptx::Type type) {
  if (!instruction.converged) return operands_.ReadVector(instruction.operands[1], type);
  llvm::Type* const wanted = code_.ScalarType(type);
  Value* deposits = code_->CreateLoad(Lanes(code_->getInt64Ty()), deposits_);
  Value* bits = code_.Resize(deposits, wanted->getScalarSizeInBits(), false);
  return code_->CreateBitCast(bits, Lanes(wanted));
}

llvm::Value* CollectiveBuilder::UnitedMembers(const Operand& members, Value* lanes) {
  if (operands_.source().lanes.OperandShape(members, 32).uniform()) {
    return operands_.ReadScalar(members, ptx::Type::kB32);
  }
  Value* all = operands_.ReadVector(members, ptx::Type::kB32);
  return code_->CreateOrReduce(code_->CreateSelect(lanes, all, Like(all, 0)));
}

// Whether a member has not come to the current block.
llvm::Value* CollectiveBuilder::IsOneElsewhere(const Operand& members) {
  Value* elsewhere =
      code_->CreateAnd(masks_.Live(), code_->CreateNot(code_.MaskBits(masks_.mask())));
  Value* missing = code_->CreateAnd(elsewhere, UnitedMembers(members, masks_.mask()));
  return code_->CreateICmpNE(missing, code_->getInt32(0));
}

}  // namespace torpor::emulator
