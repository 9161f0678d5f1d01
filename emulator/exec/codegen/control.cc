// Masks, branches and the order in which a warp runs its blocks; see ptx/reconvergence.h.
#include "emulator/exec/codegen/function_emitter.h"
#include "emulator/ptx/strided_loop.h"

namespace torpor::emulator {

using ptx::Terminator;

llvm::BasicBlock* FunctionEmitter::NewBlock(const char* name) {
  return llvm::BasicBlock::Create(b_.getContext(), name, target_);
}

llvm::Value* FunctionEmitter::MaskBits(Value* mask) {
  return b_.CreateBitCast(mask, b_.getInt32Ty());
}

llvm::Value* FunctionEmitter::BitsToMask(Value* bits) {
  return b_.CreateBitCast(bits, Lanes(b_.getInt1Ty()));
}

llvm::Value* FunctionEmitter::AnyLane(Value* mask) {
  return b_.CreateICmpNE(MaskBits(mask), b_.getInt32(0));
}

llvm::Value* FunctionEmitter::AllLanes() {
  return llvm::ConstantInt::getTrue(Lanes(b_.getInt1Ty()));
}

llvm::Value* FunctionEmitter::GuardVector(const Instruction& instruction) {
  Value* guard = ReadRegister(instruction.guard, false);
  return instruction.guard_negated ? b_.CreateNot(guard) : guard;
}

llvm::Value* FunctionEmitter::ActiveMask(const Instruction& instruction) {
  if (instruction.guard == ptx::kNoIndex) return mask_;
  return b_.CreateAnd(mask_, GuardVector(instruction));
}

void FunctionEmitter::ReloadMask() {
  if (lanes_.reconvergence().has_all_lanes(block_)) {
    mask_ = all_lanes_;
    return;
  }
  mask_ = b_.CreateLoad(Lanes(b_.getInt1Ty()), mask_slots_[block_]);
}

void FunctionEmitter::IfAny(Value* mask, const std::function<void()>& body) {
  // The lanes of a block are never none; only a guard can make them so.
  if (mask == mask_) return body();
  llvm::BasicBlock* some = NewBlock("some");
  llvm::BasicBlock* after = NewBlock("after");
  b_.CreateCondBr(AnyLane(mask), some, after);
  b_.SetInsertPoint(some);
  body();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

void FunctionEmitter::ForEachLane(Value* mask, const std::function<void(Value* lane)>& body) {
  Value* all = MaskBits(mask);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* loop = NewBlock("lane");
  llvm::BasicBlock* after = NewBlock("lanes_done");
  b_.CreateCondBr(b_.CreateICmpNE(all, b_.getInt32(0)), loop, after);
  b_.SetInsertPoint(loop);
  llvm::PHINode* left = b_.CreatePHI(b_.getInt32Ty(), 2);
  left->addIncoming(all, before);
  body(b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, left, b_.getTrue()));
  Value* rest = b_.CreateAnd(left, b_.CreateSub(left, b_.getInt32(1)));
  left->addIncoming(rest, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpNE(rest, b_.getInt32(0)), loop, after);
  b_.SetInsertPoint(after);
}

llvm::Value* FunctionEmitter::LaneArray(llvm::Type* element) {
  llvm::IRBuilder<> entry(entry_, entry_->begin());
  llvm::AllocaInst* array = entry.CreateAlloca(llvm::ArrayType::get(element, kWarpLanes));
  array->setAlignment(llvm::Align(64));
  return array;
}

llvm::Value* FunctionEmitter::Spill(Value* vector) {
  Value* array = LaneArray(vector->getType()->getScalarType());
  b_.CreateAlignedStore(vector, array, llvm::Align(64));
  return array;
}

llvm::Value* FunctionEmitter::LaneSlot(Value* array, llvm::Type* element, Value* lane) {
  return b_.CreateInBoundsGEP(element, array, b_.CreateZExt(lane, b_.getInt64Ty()));
}

llvm::Value* FunctionEmitter::Unspill(Value* array, llvm::Type* element) {
  return b_.CreateAlignedLoad(Lanes(element), array, llvm::Align(64));
}

// The callers of a function go on without the lanes that ended in it: it returns them.
void FunctionEmitter::RecordEnd(const Instruction& branch, Value* lanes) {
  if (function_.is_kernel || branch.opcode != ptx::Opcode::kExit) return;
  RecordEnd(MaskBits(lanes));
}

void FunctionEmitter::RecordEnd(Value* lanes) {
  Value* ended = b_.CreateLoad(b_.getInt32Ty(), ended_);
  b_.CreateStore(b_.CreateOr(ended, lanes), ended_);
}

void FunctionEmitter::EmitCallThatEndsThreads(std::uint32_t block, const Instruction& call) {
  EmitInstruction(call);
  Value* ended = BitsToMask(b_.CreateLoad(b_.getInt32Ty(), ended_));
  const std::vector<std::uint32_t>& targets = flow_.blocks[block].successors;
  SendLanes(block, {{targets[0], b_.CreateAnd(mask_, b_.CreateNot(ended))}});
  RunNext(block, targets);
}

void FunctionEmitter::EmitReturn() {
  if (local_frame_ != nullptr) {
    b_.CreateStore(local_frame_, LocalTop());
  }
  if (!function_.is_kernel) {
    b_.CreateRet(b_.CreateLoad(b_.getInt32Ty(), ended_));
    return;
  }
  b_.CreateRet(b_.getInt32(0));
}

void FunctionEmitter::EmitTerminator(std::uint32_t block) {
  const ptx::Block& source = flow_.blocks[block];
  if (source.is_warp_barrier) return EmitWarpBarrierEnd(block);
  switch (source.terminator) {
    case Terminator::kJump:
      SendLanes(block, {{source.successors[0], mask_}});
      return RunNext(block, source.successors);
    case Terminator::kExit:
      if (source.branch != ptx::kNoIndex) {
        RecordEnd(function_.instructions[source.branch], mask_);
      }
      return RunNext(block, {});
    case Terminator::kConditional:
      return EmitConditional(block, function_.instructions[source.branch]);
    case Terminator::kConditionalExit:
      return EmitConditionalExit(block, function_.instructions[source.branch]);
    case Terminator::kIndexed:
      return EmitIndexed(block, function_.instructions[source.branch]);
  }
}

// The lanes of `blocks` that are on their way: not at a barrier of the warp.
llvm::Value* FunctionEmitter::LanesOnTheirWay(const ptx::BitSet& blocks) {
  Value* lanes = b_.getInt32(0);
  blocks.ForEach([&](std::size_t block) {
    if (flow_.blocks[block].is_warp_barrier) return;
    Value* mask = b_.CreateLoad(Lanes(b_.getInt1Ty()), mask_slots_[block]);
    lanes = b_.CreateOr(lanes, MaskBits(mask));
  });
  return lanes;
}

// Whether none of the lanes that those at warp barrier `block` wait for is on its way.
llvm::Value* FunctionEmitter::IsReady(std::uint32_t block, Value* on_their_way) {
  const Instruction& barrier = function_.instructions[flow_.blocks[block].first];
  if (!barrier.operands.empty()) {
    Value* here = b_.CreateLoad(Lanes(b_.getInt1Ty()), mask_slots_[block]);
    on_their_way = b_.CreateAnd(on_their_way, UnitedMembers(barrier.operands[0], here));
  }
  return b_.CreateICmpEQ(on_their_way, b_.getInt32(0));
}

// Lanes that wait at other barriers of the warp, and now only for these, go on as well.
void FunctionEmitter::EmitWarpBarrierEnd(std::uint32_t block) {
  std::vector<std::uint32_t> targets = flow_.blocks[block].successors;
  std::vector<std::pair<std::uint32_t, Value*>> lanes = {{targets[0], mask_}};
  const std::vector<std::uint32_t> others = lanes_.reconvergence().OtherWarpBarriers(block);
  Value* on_their_way =
      others.empty() ? nullptr : LanesOnTheirWay(lanes_.reconvergence().pending(block));
  for (const std::uint32_t other : others) {
    targets.push_back(flow_.blocks[other].successors[0]);
    Value* none = llvm::Constant::getNullValue(mask_->getType());
    Value* here = b_.CreateLoad(mask_->getType(), mask_slots_[other]);
    Value* ready = IsReady(other, on_their_way);
    lanes.emplace_back(targets.back(), b_.CreateSelect(ready, here, none));
    b_.CreateStore(b_.CreateSelect(ready, none, here), mask_slots_[other]);
  }
  SendLanes(block, lanes);
  RunNext(block, targets);
}

void FunctionEmitter::EmitConditional(std::uint32_t block, const Instruction& branch) {
  const std::vector<std::uint32_t>& targets = flow_.blocks[block].successors;
  if (lanes_.divergent(block)) {
    Value* taken = GuardVector(branch);
    SendLanes(block, {{targets[0], b_.CreateAnd(mask_, taken)},
                      {targets[1], b_.CreateAnd(mask_, b_.CreateNot(taken))}});
    return RunNext(block, targets);
  }
  Value* taken = nullptr;
  if (branch.opcode == ptx::Opcode::kConverge) {
    taken = IsOneElsewhere(branch.operands[1]);
  } else {
    taken = ReadRegister(branch.guard, true);
    if (branch.guard_negated) taken = b_.CreateNot(taken);
  }
  llvm::BasicBlock* sides[] = {NewBlock("taken"), NewBlock("not_taken")};
  b_.CreateCondBr(taken, sides[0], sides[1]);
  for (unsigned side = 0; side < 2; ++side) {
    b_.SetInsertPoint(sides[side]);
    SendLanes(block, {{targets[side], mask_}});
    RunNext(block, {targets[side]});
  }
}

void FunctionEmitter::EmitConditionalExit(std::uint32_t block, const Instruction& branch) {
  if (branch.opcode == ptx::Opcode::kCall) return EmitCallThatEndsThreads(block, branch);
  const std::vector<std::uint32_t>& targets = flow_.blocks[block].successors;
  if (lanes_.divergent(block)) {
    RecordEnd(branch, ActiveMask(branch));
    SendLanes(block, {{targets[0], b_.CreateAnd(mask_, b_.CreateNot(GuardVector(branch)))}});
    return RunNext(block, targets);
  }
  Value* leaves = ReadRegister(branch.guard, true);
  if (branch.guard_negated) leaves = b_.CreateNot(leaves);
  llvm::BasicBlock* leave = NewBlock("leave");
  llvm::BasicBlock* stay = NewBlock("stay");
  b_.CreateCondBr(leaves, leave, stay);
  b_.SetInsertPoint(leave);
  RecordEnd(branch, mask_);
  RunNext(block, {});
  b_.SetInsertPoint(stay);
  SendLanes(block, {{targets[0], mask_}});
  RunNext(block, targets);
}

void FunctionEmitter::EmitIndexed(std::uint32_t block, const Instruction& branch) {
  const std::vector<std::uint32_t>& targets = flow_.blocks[block].successors;
  if (targets.empty() || branch.guard != ptx::kNoIndex) {
    Unsupported(branch, "without a table, or guarded");
    b_.CreateUnreachable();
    return;
  }
  if (lanes_.divergent(block)) {
    Value* index = ReadVector(branch.operands[0], Type::kU32);
    std::vector<std::pair<std::uint32_t, Value*>> sent;
    Value* left = mask_;
    for (std::size_t i = 0; i + 1 < targets.size(); ++i) {
      Value* here = b_.CreateICmpEQ(index, Like(index, i));
      sent.emplace_back(targets[i], b_.CreateAnd(left, here));
      left = b_.CreateAnd(left, b_.CreateNot(here));
    }
    sent.emplace_back(targets.back(), left);
    SendLanes(block, sent);
    return RunNext(block, targets);
  }
  // An index beyond the table is undefined; it goes to the last target.
  Value* index = ReadScalar(branch.operands[0], Type::kU32);
  std::vector<llvm::BasicBlock*> sides;
  for (std::size_t i = 0; i < targets.size(); ++i) sides.push_back(NewBlock("case"));
  llvm::SwitchInst* choice =
      b_.CreateSwitch(index, sides.back(), static_cast<unsigned>(targets.size()));
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (i + 1 < targets.size())
      choice->addCase(b_.getInt32(static_cast<std::uint32_t>(i)), sides[i]);
    b_.SetInsertPoint(sides[i]);
    SendLanes(block, {{targets[i], mask_}});
    RunNext(block, {targets[i]});
  }
}

// Adds lanes to those that wait at blocks.
void FunctionEmitter::SendLanes(std::uint32_t from,
                                const std::vector<std::pair<std::uint32_t, Value*>>& lanes) {
  const ptx::BitSet& pending = lanes_.reconvergence().pending(from);
  std::map<std::uint32_t, Value*> sent;
  for (const auto& [target, mask] : lanes) {
    Value*& total = sent[target];
    total = total == nullptr ? mask : b_.CreateOr(total, mask);
  }
  llvm::Type* type = Lanes(b_.getInt1Ty());
  for (auto& [target, mask] : sent) {
    if (pending.Contains(target)) {
      mask = b_.CreateOr(mask, b_.CreateLoad(type, mask_slots_[target]));
    }
    b_.CreateStore(mask, mask_slots_[target]);
  }
}

void FunctionEmitter::RunNext(std::uint32_t from, const std::vector<std::uint32_t>& targets) {
  const ptx::Reconvergence& reconvergence = lanes_.reconvergence();
  ptx::BitSet waiting = reconvergence.pending(from);
  for (const std::uint32_t target : targets) waiting.Insert(target);
  const auto candidates = reconvergence.Candidates(from, targets);
  const bool may_finish =
      targets.empty() ||
      (lanes_.divergent(from) && flow_.blocks[from].terminator == Terminator::kConditionalExit);
  Value* on_their_way = nullptr;
  std::map<std::uint32_t, llvm::BasicBlock*> edges;  // a warp barrier may be tried twice
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto [block, if_ready] = candidates[i];
    if (if_ready && on_their_way == nullptr) on_their_way = LanesOnTheirWay(waiting);
    llvm::BasicBlock*& edge = edges[block];
    if (edge == nullptr) edge = EdgeTo(from, block, waiting);
    if (i + 1 == candidates.size() && !may_finish) {
      b_.CreateBr(edge);
      return;
    }
    llvm::BasicBlock* next = NewBlock("next");
    Value* runs = AnyLane(b_.CreateLoad(Lanes(b_.getInt1Ty()), mask_slots_[block]));
    if (if_ready) runs = b_.CreateAnd(runs, IsReady(block, on_their_way));
    b_.CreateCondBr(runs, edge, next);
    b_.SetInsertPoint(next);
  }
  EmitReturn();
}

// Enters block `to`. Blocks at which lanes may wait there by some other way, but not by this one,
// have none.
llvm::BasicBlock* FunctionEmitter::EdgeTo(std::uint32_t from, std::uint32_t to,
                                          const ptx::BitSet& waiting) {
  llvm::BasicBlock* edge = NewBlock("edge");
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  b_.SetInsertPoint(edge);
  lanes_.reconvergence().pending(to).ForEach([&](std::size_t block) {
    if (waiting.Contains(block)) return;
    b_.CreateStore(llvm::ConstantInt::getFalse(Lanes(b_.getInt1Ty())), mask_slots_[block]);
  });
  const ptx::Block& target = flow_.blocks[to];
  const bool goes_back = to <= from && from < target.loop_end;
  if (goes_back && target.spins) {
    Value* goes_on = CallRuntime(offsetof(RuntimeCalls, yield), b_.getInt32Ty(), {context_});
    if (resumable()) {
      WaitBefore(to, goes_on);
      return edge;
    }
  } else if (goes_back && resumable()) {
    const std::uint32_t stride = ptx::StrideOfLoop(function_, flow_, lanes_, to);
    if (stride != ptx::kNoIndex) TakeTurns(to, stride);
  }
  b_.CreateBr(blocks_[to]);
  return edge;
}

}  // namespace torpor::emulator
