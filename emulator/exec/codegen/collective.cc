// Operations that the lanes of a warp do together, wherever they are; see ptx/collective.h.
#include <algorithm>

#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

// Lanes of this function that have not ended, wherever they wait.
llvm::Value* FunctionEmitter::LiveLanes() {
  Value* lanes = MaskBits(mask_);
  lanes_.reconvergence().pending(block_).ForEach([&](std::size_t block) {
    Value* mask = b_.CreateLoad(Lanes(b_.getInt1Ty()), mask_slots_[block]);
    lanes = b_.CreateOr(lanes, MaskBits(mask));
  });
  return lanes;
}

// All that the members of any of `lanes` are.
llvm::Value* FunctionEmitter::UnitedMembers(const Operand& members, Value* lanes) {
  if (lanes_.OperandShape(members, 32).uniform()) return ReadScalar(members, Type::kB32);
  Value* all = ReadVector(members, Type::kB32);
  return b_.CreateOrReduce(b_.CreateSelect(lanes, all, Like(all, 0)));
}

// Whether a member has not come to the current block.
llvm::Value* FunctionEmitter::IsOneElsewhere(const Operand& members) {
  Value* elsewhere = b_.CreateAnd(LiveLanes(), b_.CreateNot(MaskBits(mask_)));
  Value* missing = b_.CreateAnd(elsewhere, UnitedMembers(members, mask_));
  return b_.CreateICmpNE(missing, b_.getInt32(0));
}

void FunctionEmitter::CreateDepositSlot() {
  const bool needed = std::any_of(
      function_.instructions.begin(), function_.instructions.end(),
      [](const Instruction& instruction) { return instruction.opcode == ptx::Opcode::kDeposit; });
  if (needed) deposits_ = b_.CreateAlloca(Lanes(b_.getInt64Ty()));
}

void FunctionEmitter::EmitDeposit(const Instruction& instruction) {
  Value* value = Resize(ToInt(ReadVector(instruction.operands[0], instruction.type())), 64, false);
  Value* others = b_.CreateLoad(value->getType(), deposits_);
  b_.CreateStore(b_.CreateSelect(mask_, value, others), deposits_);
}

// The lanes that take part if they are members.
llvm::Value* FunctionEmitter::Participants(const Instruction& instruction) {
  return instruction.converged ? BitsToMask(LiveLanes()) : ActiveMask(instruction);
}

// What the lanes bring, which is the operation's first source.
llvm::Value* FunctionEmitter::Contribution(const Instruction& instruction, Type type) {
  if (!instruction.converged) return ReadVector(instruction.operands[1], type);
  llvm::Type* const wanted = ScalarType(type);
  Value* deposits = b_.CreateLoad(Lanes(b_.getInt64Ty()), deposits_);
  Value* bits = Resize(deposits, wanted->getScalarSizeInBits(), false);
  return b_.CreateBitCast(bits, Lanes(wanted));
}

}  // namespace torpor::emulator
