// Barriers, shuffles, votes and what else involves a whole warp.
#include <cstddef>

#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

// bar.sync a{, b}; bar.arrive a, b; bar.red.op d, a{, b}, c; barrier is the same.
void FunctionEmitter::EmitBarrier(const Instruction& instruction) {
  const bool cluster = instruction.operands.empty() && instruction.Has(Modifier::kCluster);
  if (cluster) return EmitClusterBarrier(instruction);
  if (instruction.Has(Modifier::kWarp)) {
    // All that it waits for have arrived; see EmitWarpBarrierEnd.
    b_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent, llvm::SyncScope::SingleThread);
    return;
  }
  const bool reduce = instruction.Has(Modifier::kRed);
  std::size_t next = reduce ? 1 : 0;
  const std::size_t end = instruction.operands.size() - (reduce ? 1 : 0);
  if (instruction.operands.size() < (reduce ? 3U : 1U)) return Unsupported(instruction, "operands");
  const bool whole_block = !reduce && !instruction.Has(Modifier::kArrive) &&
                           instruction.operands.size() == 1 &&
                           lanes_.ConstantOf(instruction.operands[0]) == 0U;
  if (whole_block) return EmitBlockBarrier(instruction);
  Value* id = ReadScalar(instruction.operands[next++], Type::kU32);
  Value* threads = next < end ? ReadScalar(instruction.operands[next], Type::kU32) : b_.getInt32(0);
  BarrierMode mode = instruction.Has(Modifier::kArrive) ? BarrierMode::kArrive : BarrierMode::kSync;
  Value* mask = ActiveMask(instruction);
  Value* predicates = b_.getInt32(0);
  if (reduce) {
    mode = instruction.Has(Modifier::kPopc)  ? BarrierMode::kPopc
           : instruction.Has(Modifier::kAnd) ? BarrierMode::kAnd
                                             : BarrierMode::kOr;
    Value* predicate = ReadVector(instruction.operands[end], Type::kPred);
    predicates = MaskBits(b_.CreateAnd(mask, predicate));
  }
  IfAny(mask, [&] {
    WaitAtBarrier(instruction, {context_, id, threads, MaskBits(mask), predicates,
                                b_.getInt32(static_cast<std::uint32_t>(mode))});
    if (reduce) WriteBarrierResult(instruction, mode);
  });
  ReloadMask();
}

// bar.sync 0: __syncthreads.
void FunctionEmitter::EmitBlockBarrier(const Instruction& instruction) {
  IfAny(ActiveMask(instruction), [&] {
    WaitUnless(CallRuntime(offsetof(RuntimeCalls, block_barrier), b_.getInt32Ty(), {context_}),
               instruction);
  });
  ReloadMask();
}

void FunctionEmitter::WaitAtBarrier(const Instruction& instruction,
                                    const std::vector<Value*>& arguments) {
  WaitUnless(CallRuntime(offsetof(RuntimeCalls, barrier), b_.getInt32Ty(), arguments), instruction);
}

void FunctionEmitter::WriteBarrierResult(const Instruction& instruction, BarrierMode mode) {
  Value* result = ContextField(offsetof(WarpContext, barrier_result), b_.getInt32Ty(), false);
  Value* count = b_.CreateLShr(result, 1);
  const Operand& destination = instruction.operands[0];
  if (mode == BarrierMode::kPopc) return Write(instruction, destination, count, Type::kU32);
  Value* holds = mode == BarrierMode::kAnd ? b_.CreateTrunc(result, b_.getInt1Ty())
                                           : b_.CreateICmpNE(count, b_.getInt32(0));
  Write(instruction, destination, holds, Type::kPred);
}

// barrier.cluster.arrive and .wait. Who arrives must wait later, and a cluster is one block: it is
// enough that all wait for each other there.
void FunctionEmitter::EmitClusterBarrier(const Instruction& instruction) {
  if (!instruction.Has(Modifier::kWait)) return;
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    WaitAtBarrier(instruction,
                  {context_, b_.getInt32(kClusterBarrier), b_.getInt32(0), MaskBits(mask),
                   b_.getInt32(0), b_.getInt32(static_cast<std::uint32_t>(BarrierMode::kSync))});
  });
  ReloadMask();
}

// The lane that each lane reads, and whether that is in the group (`valid`).
llvm::Value* FunctionEmitter::ShuffleSource(const Instruction& instruction, Value* lane,
                                            Value* clamp, Value*& valid) {
  Value* self = Spread(b_.getInt32(0), 1, row_lanes());
  const auto five_bits = [&](Value* value) { return b_.CreateAnd(value, Like(value, 31)); };
  lane = five_bits(lane);
  Value* group = five_bits(b_.CreateLShr(clamp, Like(clamp, 8)));
  Value* inverse = b_.CreateNot(group);
  Value* first = b_.CreateAnd(self, group);
  Value* last = b_.CreateOr(first, b_.CreateAnd(five_bits(clamp), inverse));
  Value* source = nullptr;
  if (instruction.Has(Modifier::kUp)) {
    source = b_.CreateSub(self, lane);
    valid = b_.CreateICmpSGE(source, last);
  } else {
    if (instruction.Has(Modifier::kDown)) {
      source = b_.CreateAdd(self, lane);
    } else if (instruction.Has(Modifier::kBfly)) {
      source = b_.CreateXor(self, lane);
    } else {
      source = b_.CreateOr(first, b_.CreateAnd(lane, inverse));
    }
    valid = b_.CreateICmpSLE(source, last);
  }
  return five_bits(b_.CreateSelect(valid, source, self));
}

void FunctionEmitter::EmitShuffle(const Instruction& instruction) {
  if (!Expect(instruction, 4)) return;
  const auto group = [&](const Operand& operand) -> Value* {
    const auto constant = lanes_.ConstantOf(operand);
    if (constant) return Spread(b_.getInt32(static_cast<std::uint32_t>(*constant)), 0);
    return ReadVector(operand, Type::kU32);
  };
  Value* value = Contribution(instruction, Type::kB32);
  Value* valid = nullptr;
  Value* source = ShuffleSource(instruction, group(instruction.operands[2]),
                                group(instruction.operands[3]), valid);
  Value* result = nullptr;
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(source)) {
    std::vector<int> indices;
    for (unsigned i = 0; i < kWarpLanes; ++i) {
      const auto* index = llvm::cast<llvm::ConstantInt>(constant->getAggregateElement(i));
      indices.push_back(static_cast<int>(index->getZExtValue()));
    }
    result = b_.CreateShuffleVector(value, indices);
  } else if (scalar_) {
    result = b_.CreateExtractElement(value, b_.CreateExtractElement(source, std::uint64_t{0}));
  } else {
    Value* spilled = Spill(value);
    result = b_.CreateMaskedGather(Lanes(b_.getInt32Ty()),
                                   b_.CreateGEP(b_.getInt32Ty(), spilled, source), llvm::Align(4),
                                   AllLanes());
  }
  const Operand& destination = instruction.operands[0];
  if (destination.kind != Operand::Kind::kVector) {
    return Write(instruction, destination, result, Type::kB32);
  }
  if (destination.elements.size() != 2) return Unsupported(instruction, "operands");
  Write(instruction, destination.elements[0], result, Type::kB32);
  Write(instruction, destination.elements[1], valid, Type::kPred);
}

void FunctionEmitter::EmitVote(const Instruction& instruction) {
  if (!Expect(instruction, 3)) return;
  Value* active = Participants(instruction);
  Value* predicate = Contribution(instruction, Type::kPred);
  Value* members = ReadAny(instruction.operands[2], Type::kB32, scalar_);
  const auto shaped = [&](Value* bits) { return scalar_ ? bits : Spread(bits, 0); };
  Value* present = b_.CreateAnd(shaped(MaskBits(active)), members);
  Value* votes = b_.CreateAnd(shaped(MaskBits(b_.CreateAnd(active, predicate))), members);
  if (instruction.Has(Modifier::kBallot)) {
    return Write(instruction, instruction.operands[0], votes, Type::kB32);
  }
  Value* none = b_.CreateICmpEQ(votes, Like(votes, 0));
  Value* all = b_.CreateICmpEQ(votes, present);
  Value* result = instruction.Has(Modifier::kAny)   ? b_.CreateNot(none)
                  : instruction.Has(Modifier::kAll) ? all
                                                    : b_.CreateOr(none, all);
  Write(instruction, instruction.operands[0], result, Type::kPred);
}

void FunctionEmitter::EmitActiveMask(const Instruction& instruction) {
  if (!Expect(instruction, 1)) return;
  Write(instruction, instruction.operands[0], MaskBits(ActiveMask(instruction)), Type::kB32);
}

// A block runs on one thread of the host, so its own order needs no instruction.
void FunctionEmitter::EmitFence(const Instruction& instruction) {
  const bool block_only = instruction.Has(Modifier::kCta);
  b_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent,
                 block_only ? llvm::SyncScope::SingleThread : llvm::SyncScope::System);
}

void FunctionEmitter::EmitTrap(const Instruction& instruction) {
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    CallRuntime(offsetof(RuntimeCalls, trap), b_.getVoidTy(), {context_, MaskBits(mask)});
  });
}

// The reduction of `value` over the lanes of `members`.
llvm::Value* FunctionEmitter::Reduce(const Instruction& instruction, Value* value, Value* members) {
  if (instruction.type() == Type::kF32) return ReduceFloat(instruction, value, members);
  const bool is_signed = ptx::IsSigned(instruction.type());
  const auto others = [&](std::uint64_t identity) {
    return b_.CreateSelect(members, value, Like(value, identity));
  };
  if (instruction.Has(Modifier::kAdd)) return b_.CreateAddReduce(others(0));
  if (instruction.Has(Modifier::kAnd)) return b_.CreateAndReduce(others(0xffffffff));
  if (instruction.Has(Modifier::kOr)) return b_.CreateOrReduce(others(0));
  if (instruction.Has(Modifier::kXor)) return b_.CreateXorReduce(others(0));
  if (instruction.Has(Modifier::kMin)) {
    return b_.CreateIntMinReduce(others(is_signed ? 0x7fffffff : 0xffffffff), is_signed);
  }
  return b_.CreateIntMaxReduce(others(is_signed ? 0x80000000 : 0), is_signed);
}

// The least or the greatest f32, perhaps of magnitudes. Lanes that are no members count as the
// value that never wins.
llvm::Value* FunctionEmitter::ReduceFloat(const Instruction& instruction, Value* value,
                                          Value* members) {
  const bool minimum = instruction.Has(Modifier::kMin);
  if (instruction.Has(Modifier::kAbs)) value = Intrinsic(llvm::Intrinsic::fabs, {value});
  Value* never = instruction.Has(Modifier::kNan)
                     ? llvm::ConstantFP::getInfinity(value->getType(), !minimum)
                     : llvm::ConstantFP::getNaN(value->getType());
  value = b_.CreateSelect(members, value, never);
  for (unsigned half = kWarpLanes / 2; half > 0; half /= 2) {
    std::vector<int> partners;
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      partners.push_back(static_cast<int>(lane ^ half));
    }
    value = Extreme(instruction, minimum, value, b_.CreateShuffleVector(value, partners));
  }
  return b_.CreateExtractElement(value, std::uint64_t{0});
}

// redux.sync.op d, a, members
void FunctionEmitter::EmitReduction(const Instruction& instruction) {
  if (!Expect(instruction, 3)) return;
  const Type type = instruction.type();
  const bool extreme = instruction.Has(Modifier::kMin) || instruction.Has(Modifier::kMax);
  const bool known =
      type == Type::kF32 ? extreme : ptx::BitWidth(type) == 32 && !ptx::IsFloat(type);
  if (!known) return Unsupported(instruction);
  Value* active = Participants(instruction);
  Value* value = Contribution(instruction, type);
  if (scalar_) {
    Value* members = BitsToMask(ReadScalar(instruction.operands[2], Type::kB32));
    Value* result = Reduce(instruction, value, b_.CreateAnd(active, members));
    return Write(instruction, instruction.operands[0], result, type);
  }
  Value* groups = Spill(ReadVector(instruction.operands[2], Type::kB32));
  llvm::Type* element = value->getType()->getScalarType();
  Value* results = LaneArray(element);
  ForEachLane(active, [&](Value* lane) {
    Value* group = b_.CreateLoad(b_.getInt32Ty(), LaneSlot(groups, b_.getInt32Ty(), lane));
    Value* members = b_.CreateAnd(active, BitsToMask(group));
    b_.CreateStore(Reduce(instruction, value, members), LaneSlot(results, element, lane));
  });
  Write(instruction, instruction.operands[0], Unspill(results, element), type);
}

// match.any: the lanes that hold my value; match.all: all members, if all hold the same.
void FunctionEmitter::EmitMatch(const Instruction& instruction) {
  if (!Expect(instruction, 3)) return;
  Value* active = Participants(instruction);
  Value* value = Contribution(instruction, instruction.type());
  Value* members = ReadVector(instruction.operands[2], Type::kB32);
  Value* spilled = Spill(value);
  Value* results = LaneArray(b_.getInt32Ty());
  llvm::Type* element = value->getType()->getScalarType();
  ForEachLane(active, [&](Value* lane) {
    Value* mine = b_.CreateLoad(element, LaneSlot(spilled, element, lane));
    Value* same = b_.CreateAnd(active, b_.CreateICmpEQ(value, Spread(mine, 0)));
    b_.CreateStore(MaskBits(same), LaneSlot(results, b_.getInt32Ty(), lane));
  });
  Value* same = b_.CreateAnd(Unspill(results, b_.getInt32Ty()), members);
  const Operand& destination = instruction.operands[0];
  if (instruction.Has(Modifier::kAny)) return Write(instruction, destination, same, Type::kB32);
  Value* present = b_.CreateAnd(Spread(MaskBits(active), 0), members);
  Value* all = b_.CreateICmpEQ(same, present);
  const bool pair = destination.kind == Operand::Kind::kVector && destination.elements.size() == 2;
  Write(instruction, pair ? destination.elements[0] : destination,
        b_.CreateSelect(all, same, Like(same, 0)), Type::kB32);
  if (pair) Write(instruction, destination.elements[1], all, Type::kPred);
}

// elect.sync leader|is_leader, members: the first of the members.
void FunctionEmitter::EmitElect(const Instruction& instruction) {
  const auto& operands = instruction.operands;
  const bool pair = operands.size() == 2 && operands[0].kind == Operand::Kind::kVector &&
                    operands[0].elements.size() == 2;
  if (!pair) return Unsupported(instruction, "operands");
  Value* active = Spread(MaskBits(Participants(instruction)));
  Value* members = b_.CreateAnd(ReadVector(operands[1], Type::kB32), active);
  Value* leader = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, members, b_.getFalse());
  Write(instruction, operands[0].elements[0], leader, Type::kU32);
  Value* self = Spread(b_.getInt32(0), 1, row_lanes());
  Write(instruction, operands[0].elements[1], b_.CreateICmpEQ(self, leader), Type::kPred);
}

}  // namespace torpor::emulator
