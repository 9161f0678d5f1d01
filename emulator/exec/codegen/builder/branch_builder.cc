#include "emulator/exec/codegen/builder/branch_builder.h"

#include <cstddef>
#include <map>

#include "emulator/ptx/strided_loop.h"

namespace torpor::emulator {

using ptx::Terminator;

BranchBuilder::BranchBuilder(OperandBuilder& operands, CollectiveBuilder& collectives,
                             Suspension& suspension, LocalStack& stack, EndedLanes& ended)
    : operands_(operands),
      code_(operands.code()),
      context_(operands.context()),
      masks_(operands.masks()),
      source_(operands.source()),
      collectives_(collectives),
      suspension_(suspension),
      stack_(stack),
      ended_(ended) {}

const ptx::Instruction* BranchBuilder::CallAtEnd(std::uint32_t block) const {
  const ptx::BasicBlock& source = source_.flow.blocks[block];
  if (source.is_warp_barrier || source.terminator != Terminator::kConditionalExit) return nullptr;
  const Instruction& branch = source_.function.instructions[source.branch];
  return branch.opcode == ptx::Opcode::kCall ? &branch : nullptr;
}

void BranchBuilder::End(std::uint32_t block) {
  const ptx::BasicBlock& source = source_.flow.blocks[block];
  if (source.is_warp_barrier) return EndWarpBarrier(block);
  switch (source.terminator) {
    case Terminator::kJump:
      SendLanes(block, {{source.successors[0], masks_.mask()}});
      return RunNext(block, source.successors);
    case Terminator::kExit:
      if (source.branch != ptx::kNoIndex) {
        ended_.RecordBranch(source_.function.instructions[source.branch], masks_.mask());
      }
      return RunNext(block, {});
    case Terminator::kConditional:
      return EndConditional(block, source_.function.instructions[source.branch]);
    case Terminator::kConditionalExit:
      return EndConditionalExit(block, source_.function.instructions[source.branch]);
    case Terminator::kIndexed:
      return EndIndexed(block, source_.function.instructions[source.branch]);
  }
}

// The lanes at `blocks` other than barriers of the warp.
llvm::Value* BranchBuilder::LanesOnTheirWay(const ptx::BitSet& blocks) {
  Value* lanes = code_->getInt32(0);
  blocks.ForEach([&](std::size_t block) {
    if (source_.flow.blocks[block].is_warp_barrier) return;
    Value* mask = masks_.Waiting(block);
    lanes = code_->CreateOr(lanes, code_.MaskBits(mask));
  });
  return lanes;
}

// Whether the lanes at warp barrier `block` may go on: all members have arrived or ended.
llvm::Value* BranchBuilder::IsReady(std::uint32_t block, Value* on_their_way) {
  const Instruction& barrier = source_.function.instructions[source_.flow.blocks[block].first];
  if (!barrier.operands.empty()) {
    Value* here = masks_.Waiting(block);
    on_their_way =
        code_->CreateAnd(on_their_way, collectives_.UnitedMembers(barrier.operands[0], here));
  }
  return code_->CreateICmpEQ(on_their_way, code_->getInt32(0));
}

// Releases lanes at other barriers of the warp, too, if only the current lanes were missing there.
void BranchBuilder::EndWarpBarrier(std::uint32_t block) {
  std::vector<std::uint32_t> targets = source_.flow.blocks[block].successors;
  std::vector<std::pair<std::uint32_t, Value*>> lanes = {{targets[0], masks_.mask()}};
  const std::vector<std::uint32_t> others = source_.lanes.reconvergence().OtherWarpBarriers(block);
  Value* on_their_way =
      others.empty() ? nullptr : LanesOnTheirWay(source_.lanes.reconvergence().pending(block));
  for (const std::uint32_t other : others) {
    targets.push_back(source_.flow.blocks[other].successors[0]);
    Value* none = llvm::Constant::getNullValue(masks_.mask()->getType());
    Value* here = masks_.Waiting(other);
    Value* ready = IsReady(other, on_their_way);
    lanes.emplace_back(targets.back(), code_->CreateSelect(ready, here, none));
    masks_.SetWaiting(code_->CreateSelect(ready, none, here), other);
  }
  SendLanes(block, lanes);
  RunNext(block, targets);
}

// Divergent: sends lanes to both targets. Uniform: a branch of LLVM, with all lanes on one side.
void BranchBuilder::EndConditional(std::uint32_t block, const Instruction& branch) {
  const std::vector<std::uint32_t>& targets = source_.flow.blocks[block].successors;
  if (source_.lanes.divergent(block)) {
    Value* taken = masks_.Guard(branch);
    SendLanes(block, {{targets[0], code_->CreateAnd(masks_.mask(), taken)},
                      {targets[1], code_->CreateAnd(masks_.mask(), code_->CreateNot(taken))}});
    return RunNext(block, targets);
  }
  Value* taken = nullptr;
  if (branch.opcode == ptx::Opcode::kConverge) {
    taken = collectives_.IsOneElsewhere(branch.operands[1]);
  } else {
    taken = masks_.ScalarGuard(branch);
  }
  llvm::BasicBlock* sides[] = {code_.NewBlock("taken"), code_.NewBlock("not_taken")};
  code_->CreateCondBr(taken, sides[0], sides[1]);
  for (unsigned side = 0; side < 2; ++side) {
    code_->SetInsertPoint(sides[side]);
    SendLanes(block, {{targets[side], masks_.mask()}});
    RunNext(block, {targets[side]});
  }
}

// As EndConditional, with the end of threads as the first target.
void BranchBuilder::EndConditionalExit(std::uint32_t block, const Instruction& branch) {
  if (branch.opcode == ptx::Opcode::kCall) return EndCall(block);
  const std::vector<std::uint32_t>& targets = source_.flow.blocks[block].successors;
  if (source_.lanes.divergent(block)) {
    ended_.RecordBranch(branch, masks_.Active(branch));
    SendLanes(block, {{targets[0],
                       code_->CreateAnd(masks_.mask(), code_->CreateNot(masks_.Guard(branch)))}});
    return RunNext(block, targets);
  }
  Value* leaves = masks_.ScalarGuard(branch);
  llvm::BasicBlock* leave = code_.NewBlock("leave");
  llvm::BasicBlock* stay = code_.NewBlock("stay");
  code_->CreateCondBr(leaves, leave, stay);
  code_->SetInsertPoint(leave);
  ended_.RecordBranch(branch, masks_.mask());
  RunNext(block, {});
  code_->SetInsertPoint(stay);
  SendLanes(block, {{targets[0], masks_.mask()}});
  RunNext(block, targets);
}

// Where the lanes may go different ways.
void BranchBuilder::SendByIndex(std::uint32_t block, const Instruction& branch) {
  const std::vector<std::uint32_t>& targets = source_.flow.blocks[block].successors;
  Value* index = operands_.ReadVector(branch.operands[0], ptx::Type::kU32);
  std::vector<std::pair<std::uint32_t, Value*>> sent;
  Value* left = masks_.mask();
  for (std::size_t i = 0; i + 1 < targets.size(); ++i) {
    Value* here = code_->CreateICmpEQ(index, Like(index, i));
    sent.emplace_back(targets[i], code_->CreateAnd(left, here));
    left = code_->CreateAnd(left, code_->CreateNot(here));
  }
  sent.emplace_back(targets.back(), left);
  SendLanes(block, sent);
  RunNext(block, targets);
}

// brx.idx: a switch of LLVM if the index is uniform.
void BranchBuilder::EndIndexed(std::uint32_t block, const Instruction& branch) {
  const std::vector<std::uint32_t>& targets = source_.flow.blocks[block].successors;
  if (targets.empty() || branch.guard != ptx::kNoIndex) {
    operands_.Unsupported(branch, "without a table, or guarded");
    code_->CreateUnreachable();
    return;
  }
  if (source_.lanes.divergent(block)) return SendByIndex(block, branch);
  // PTX leaves an index beyond the table undefined; here the index selects the last target.
  Value* index = operands_.ReadScalar(branch.operands[0], ptx::Type::kU32);
  std::vector<llvm::BasicBlock*> sides;
  for (std::size_t i = 0; i < targets.size(); ++i) sides.push_back(code_.NewBlock("case"));
  llvm::SwitchInst* choice =
      code_->CreateSwitch(index, sides.back(), static_cast<unsigned>(targets.size()));
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (i + 1 < targets.size()) {
      choice->addCase(code_->getInt32(static_cast<std::uint32_t>(i)), sides[i]);
    }
    code_->SetInsertPoint(sides[i]);
    SendLanes(block, {{targets[i], masks_.mask()}});
    RunNext(block, {targets[i]});
  }
}

// Adds lanes to the lanes that wait at blocks.
void BranchBuilder::SendLanes(std::uint32_t from,
                              const std::vector<std::pair<std::uint32_t, Value*>>& lanes) {
  const ptx::BitSet& pending = source_.lanes.reconvergence().pending(from);
  std::map<std::uint32_t, Value*> sent;
  for (const auto& [target, mask] : lanes) {
    Value*& total = sent[target];
    total = total == nullptr ? mask : code_->CreateOr(total, mask);
  }
  for (auto& [target, mask] : sent) {
    if (pending.Contains(target)) {
      mask = code_->CreateOr(mask, masks_.Waiting(target));
    }
    masks_.SetWaiting(mask, target);
  }
}

// Tries the blocks where lanes may wait now in the order of Reconvergence::Candidates, and enters
// the first with lanes. Returns from the function if no lanes are left.
void BranchBuilder::RunNext(std::uint32_t from, const std::vector<std::uint32_t>& targets) {
  const ptx::Reconvergence& reconvergence = source_.lanes.reconvergence();
  ptx::BitSet waiting = reconvergence.pending(from);
  for (const std::uint32_t target : targets) waiting.Insert(target);
  const auto candidates = reconvergence.Candidates(from, targets);
  const bool may_finish =
      targets.empty() || (source_.lanes.divergent(from) &&
                          source_.flow.blocks[from].terminator == Terminator::kConditionalExit);
  Value* on_their_way = nullptr;
  std::map<std::uint32_t, llvm::BasicBlock*> edges;  // a warp barrier may be tried twice
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::uint32_t block = candidates[i].block;
    const bool if_ready = candidates[i].if_ready;
    if (if_ready && on_their_way == nullptr) on_their_way = LanesOnTheirWay(waiting);
    llvm::BasicBlock*& edge = edges[block];
    if (edge == nullptr) edge = EdgeTo(from, block, waiting);
    if (i + 1 == candidates.size() && !may_finish) {
      code_->CreateBr(edge);
      return;
    }
    llvm::BasicBlock* next = code_.NewBlock("next");
    Value* runs = code_.AnyLane(masks_.Waiting(block));
    if (if_ready) runs = code_->CreateAnd(runs, IsReady(block, on_their_way));
    code_->CreateCondBr(runs, edge, next);
    code_->SetInsertPoint(next);
  }
  Return();
}

// Enters block `to`. Clears the slots of blocks where lanes may wait on other ways to `to`, but not
// on this way.
llvm::BasicBlock* BranchBuilder::EdgeTo(std::uint32_t from, std::uint32_t to,
                                        const ptx::BitSet& waiting) {
  llvm::BasicBlock* edge = code_.NewBlock("edge");
  llvm::IRBuilder<>::InsertPointGuard guard(code_.ir());
  code_->SetInsertPoint(edge);
  source_.lanes.reconvergence().pending(to).ForEach([&](std::size_t block) {
    if (waiting.Contains(block)) return;
    masks_.SetWaiting(llvm::ConstantInt::getFalse(Lanes(code_->getInt1Ty())), block);
  });
  const ptx::BasicBlock& target = source_.flow.blocks[to];
  const bool goes_back = to <= from && from < target.loop_end;
  if (goes_back && target.spins) {
    Value* goes_on =
        context_.Call(offsetof(RuntimeCalls, yield), code_->getInt32Ty(), {context_.pointer()});
    if (source_.resumable()) {
      suspension_.WaitBefore(to, goes_on);
      return edge;
    }
  } else if (goes_back && source_.resumable()) {
    const std::uint32_t stride =
        ptx::StrideOfLoop(source_.function, source_.flow, source_.lanes, to);
    if (stride != ptx::kNoIndex) suspension_.TakeTurns(to, stride);
  }
  code_->CreateBr(masks_.entry(to));
  return edge;
}

void BranchBuilder::EndCall(std::uint32_t block) {
  Value* ended = code_.BitsToMask(ended_.Load());
  const std::vector<std::uint32_t>& targets = source_.flow.blocks[block].successors;
  SendLanes(block, {{targets[0], code_->CreateAnd(masks_.mask(), code_->CreateNot(ended))}});
  RunNext(block, targets);
}

void BranchBuilder::Return() {
  stack_.Close();
  if (!source_.function.is_kernel) {
    code_->CreateRet(ended_.Load());
    return;
  }
  code_->CreateRet(code_->getInt32(0));
}

}  // namespace torpor::emulator
