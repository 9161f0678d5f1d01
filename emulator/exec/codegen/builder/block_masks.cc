#include "emulator/exec/codegen/builder/block_masks.h"

#include <cstddef>

namespace torpor::emulator {

BlockMasks::BlockMasks(LaneBuilder& code, ContextBuilder& context, const FunctionSource& source,
                       RegisterFile& registers)
    : code_(code), context_(context), source_(source), registers_(registers) {
  for (std::size_t block = 0; block < source_.flow.blocks.size(); ++block) {
    slots_.push_back(code_->CreateAlloca(Lanes(code_->getInt1Ty())));
    blocks_.push_back(code_.NewBlock("block"));
  }
}

// Whole warps make the mask a constant, and so remove many selects and comparisons.
void BlockMasks::Start() {
  if (!source_.function.is_kernel) {
    all_lanes_ = code_.BitsToMask(code_.function().getArg(1));
  } else if (source_.block_shape.whole_warps) {
    all_lanes_ = code_.AllLanes();
  } else {
    all_lanes_ = code_.BitsToMask(context_.Field(offsetof(WarpContext, mask), code_->getInt32Ty()));
  }
  SetWaiting(all_lanes_, 0);
}

void BlockMasks::SelectFirst() { mask_ = Waiting(0); }

void BlockMasks::Begin(std::uint32_t block) {
  block_ = block;
  code_->SetInsertPoint(blocks_[block]);
  Reload();
}

void BlockMasks::Reload() {
  mask_ = source_.lanes.reconvergence().has_all_lanes(block_) ? all_lanes_ : Waiting(block_);
}

llvm::Value* BlockMasks::Waiting(std::size_t block) {
  return code_->CreateLoad(Lanes(code_->getInt1Ty()), slots_[block]);
}

void BlockMasks::SetWaiting(Value* mask, std::size_t block) {
  code_->CreateStore(mask, slots_[block]);
}

llvm::Value* BlockMasks::Live() {
  Value* lanes = code_.MaskBits(mask_);
  source_.lanes.reconvergence().pending(block_).ForEach(
      [&](std::size_t block) { lanes = code_->CreateOr(lanes, code_.MaskBits(Waiting(block))); });
  return lanes;
}

llvm::Value* BlockMasks::Guard(const ptx::Instruction& instruction) {
  Value* guard = registers_.Read(instruction.guard, false);
  return instruction.guard_negated ? code_->CreateNot(guard) : guard;
}

llvm::Value* BlockMasks::ScalarGuard(const ptx::Instruction& instruction) {
  Value* guard = registers_.Read(instruction.guard, true);
  return instruction.guard_negated ? code_->CreateNot(guard) : guard;
}

llvm::Value* BlockMasks::Active(const ptx::Instruction& instruction) {
  if (instruction.guard == ptx::kNoIndex) return mask_;
  return code_->CreateAnd(mask_, Guard(instruction));
}

void BlockMasks::IfAny(Value* mask, const std::function<void()>& body) {
  // A block runs only with some lane; only a guard can leave no lane.
  if (mask == mask_) return body();
  llvm::BasicBlock* some = code_.NewBlock("some");
  llvm::BasicBlock* after = code_.NewBlock("after");
  code_->CreateCondBr(code_.AnyLane(mask), some, after);
  code_->SetInsertPoint(some);
  body();
  code_->CreateBr(after);
  code_->SetInsertPoint(after);
}

}  // namespace torpor::emulator
