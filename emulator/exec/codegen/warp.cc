// Shuffles, votes and other instructions of a whole warp.
#include <cstddef>

#include "emulator/exec/codegen/float_values.h"
#include "emulator/exec/codegen/opcodes.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Operand;
using ptx::Type;

namespace {

// The source lane of each lane, and whether the source is in the lane's group (`valid`).
Value* ShuffleSource(LaneBuilder& code, const Instruction& instruction, Value* lane, Value* clamp,
                     Value*& valid) {
  Value* self = code.Spread(code->getInt32(0), 1, code.row_lanes());
  const auto five_bits = [&](Value* value) { return code->CreateAnd(value, Like(value, 31)); };
  lane = five_bits(lane);
  Value* group = five_bits(code->CreateLShr(clamp, Like(clamp, 8)));
  Value* inverse = code->CreateNot(group);
  Value* first = code->CreateAnd(self, group);
  Value* last = code->CreateOr(first, code->CreateAnd(five_bits(clamp), inverse));
  Value* source = nullptr;
  if (instruction.Has(Modifier::kUp)) {
    source = code->CreateSub(self, lane);
    valid = code->CreateICmpSGE(source, last);
  } else {
    if (instruction.Has(Modifier::kDown)) {
      source = code->CreateAdd(self, lane);
    } else if (instruction.Has(Modifier::kBfly)) {
      source = code->CreateXor(self, lane);
    } else {
      source = code->CreateOr(first, code->CreateAnd(lane, inverse));
    }
    valid = code->CreateICmpSLE(source, last);
  }
  return five_bits(code->CreateSelect(valid, source, self));
}

// Minimum or maximum of f32, or of magnitudes. Lanes outside `members` count as a value that never
// wins.
Value* ReduceFloat(LaneBuilder& code, const Instruction& instruction, Value* value,
                   Value* members) {
  const bool minimum = instruction.Has(Modifier::kMin);
  if (instruction.Has(Modifier::kAbs)) value = code.Intrinsic(llvm::Intrinsic::fabs, {value});
  Value* never = instruction.Has(Modifier::kNan)
                     ? llvm::ConstantFP::getInfinity(value->getType(), !minimum)
                     : llvm::ConstantFP::getNaN(value->getType());
  value = code->CreateSelect(members, value, never);
  for (unsigned half = kWarpLanes / 2; half > 0; half /= 2) {
    std::vector<int> partners;
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      partners.push_back(static_cast<int>(lane ^ half));
    }
    value = Extreme(code, instruction, minimum, value, code->CreateShuffleVector(value, partners));
  }
  return code->CreateExtractElement(value, std::uint64_t{0});
}

// The reduction of `value` over the lanes of `members`.
Value* Reduce(LaneBuilder& code, const Instruction& instruction, Value* value, Value* members) {
  if (instruction.type() == Type::kF32) return ReduceFloat(code, instruction, value, members);
  const bool is_signed = ptx::IsSigned(instruction.type());
  const auto others = [&](std::uint64_t identity) {
    return code->CreateSelect(members, value, Like(value, identity));
  };
  if (instruction.Has(Modifier::kAdd)) return code->CreateAddReduce(others(0));
  if (instruction.Has(Modifier::kAnd)) return code->CreateAndReduce(others(0xffffffff));
  if (instruction.Has(Modifier::kOr)) return code->CreateOrReduce(others(0));
  if (instruction.Has(Modifier::kXor)) return code->CreateXorReduce(others(0));
  if (instruction.Has(Modifier::kMin)) {
    return code->CreateIntMinReduce(others(is_signed ? 0x7fffffff : 0xffffffff), is_signed);
  }
  return code->CreateIntMaxReduce(others(is_signed ? 0x80000000 : 0), is_signed);
}

}  // namespace

void EmitShuffle(OperandBuilder& to, CollectiveBuilder& collectives,
                 const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 4)) return;
  const auto group = [&](const Operand& operand) -> Value* {
    const auto constant = to.source().lanes.ConstantOf(operand);
    if (constant) return code.Spread(code->getInt32(static_cast<std::uint32_t>(*constant)), 0);
    return to.ReadVector(operand, Type::kU32);
  };
  Value* value = collectives.Contribution(instruction, Type::kB32);
  Value* valid = nullptr;
  Value* source = ShuffleSource(code, instruction, group(instruction.operands[2]),
                                group(instruction.operands[3]), valid);
  Value* result = nullptr;
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(source)) {
    std::vector<int> indices;
    for (unsigned i = 0; i < kWarpLanes; ++i) {
      const auto* index = llvm::cast<llvm::ConstantInt>(constant->getAggregateElement(i));
      indices.push_back(static_cast<int>(index->getZExtValue()));
    }
    result = code->CreateShuffleVector(value, indices);
  } else if (to.scalar()) {
    result =
        code->CreateExtractElement(value, code->CreateExtractElement(source, std::uint64_t{0}));
  } else {
    Value* spilled = code.Spill(value);
    result = code->CreateMaskedGather(Lanes(code->getInt32Ty()),
                                      code->CreateGEP(code->getInt32Ty(), spilled, source),
                                      llvm::Align(4), code.AllLanes());
  }
  const Operand& destination = instruction.operands[0];
  if (destination.kind != Operand::Kind::kVector) {
    return to.Write(instruction, destination, result, Type::kB32);
  }
  if (destination.elements.size() != 2) return to.Unsupported(instruction, "operands");
  to.Write(instruction, destination.elements[0], result, Type::kB32);
  to.Write(instruction, destination.elements[1], valid, Type::kPred);
}

// Works on masks as bits; inactive lanes and lanes outside the members do not vote.
void EmitVote(OperandBuilder& to, CollectiveBuilder& collectives, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 3)) return;
  Value* active = collectives.Participants(instruction);
  Value* predicate = collectives.Contribution(instruction, Type::kPred);
  Value* members = to.ReadAny(instruction.operands[2], Type::kB32, to.scalar());
  const auto shaped = [&](Value* bits) { return to.scalar() ? bits : code.Spread(bits, 0); };
  Value* present = code->CreateAnd(shaped(code.MaskBits(active)), members);
  Value* votes =
      code->CreateAnd(shaped(code.MaskBits(code->CreateAnd(active, predicate))), members);
  if (instruction.Has(Modifier::kBallot)) {
    return to.Write(instruction, instruction.operands[0], votes, Type::kB32);
  }
  Value* none = code->CreateICmpEQ(votes, Like(votes, 0));
  Value* all = code->CreateICmpEQ(votes, present);
  Value* result = instruction.Has(Modifier::kAny)   ? code->CreateNot(none)
                  : instruction.Has(Modifier::kAll) ? all
                                                    : code->CreateOr(none, all);
  to.Write(instruction, instruction.operands[0], result, Type::kPred);
}

// redux.sync.op d, a, members
void EmitReduction(OperandBuilder& to, CollectiveBuilder& collectives,
                   const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 3)) return;
  const Type type = instruction.type();
  const bool extreme = instruction.Has(Modifier::kMin) || instruction.Has(Modifier::kMax);
  const bool known =
      type == Type::kF32 ? extreme : ptx::BitWidth(type) == 32 && !ptx::IsFloat(type);
  if (!known) return to.Unsupported(instruction);
  Value* active = collectives.Participants(instruction);
  Value* value = collectives.Contribution(instruction, type);
  if (to.scalar()) {
    Value* members = code.BitsToMask(to.ReadScalar(instruction.operands[2], Type::kB32));
    Value* result = Reduce(code, instruction, value, code->CreateAnd(active, members));
    return to.Write(instruction, instruction.operands[0], result, type);
  }
  Value* groups = code.Spill(to.ReadVector(instruction.operands[2], Type::kB32));
  llvm::Type* element = value->getType()->getScalarType();
  Value* results = code.LaneArray(element);
  code.ForEachLane(active, [&](Value* lane) {
    Value* group =
        code->CreateLoad(code->getInt32Ty(), code.LaneSlot(groups, code->getInt32Ty(), lane));
    Value* members = code->CreateAnd(active, code.BitsToMask(group));
    code->CreateStore(Reduce(code, instruction, value, members),
                      code.LaneSlot(results, element, lane));
  });
  to.Write(instruction, instruction.operands[0], code.Unspill(results, element), type);
}

// match.any: the lanes that hold my value; match.all: all members, if all hold the same.
void EmitMatch(OperandBuilder& to, CollectiveBuilder& collectives, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 3)) return;
  Value* active = collectives.Participants(instruction);
  Value* value = collectives.Contribution(instruction, instruction.type());
  Value* members = to.ReadVector(instruction.operands[2], Type::kB32);
  Value* spilled = code.Spill(value);
  Value* results = code.LaneArray(code->getInt32Ty());
  llvm::Type* element = value->getType()->getScalarType();
  code.ForEachLane(active, [&](Value* lane) {
    Value* mine = code->CreateLoad(element, code.LaneSlot(spilled, element, lane));
    Value* same = code->CreateAnd(active, code->CreateICmpEQ(value, code.Spread(mine, 0)));
    code->CreateStore(code.MaskBits(same), code.LaneSlot(results, code->getInt32Ty(), lane));
  });
  Value* same = code->CreateAnd(code.Unspill(results, code->getInt32Ty()), members);
  const Operand& destination = instruction.operands[0];
  if (instruction.Has(Modifier::kAny)) return to.Write(instruction, destination, same, Type::kB32);
  Value* present = code->CreateAnd(code.Spread(code.MaskBits(active), 0), members);
  Value* all = code->CreateICmpEQ(same, present);
  const bool pair = destination.kind == Operand::Kind::kVector && destination.elements.size() == 2;
  to.Write(instruction, pair ? destination.elements[0] : destination,
           code->CreateSelect(all, same, Like(same, 0)), Type::kB32);
  if (pair) to.Write(instruction, destination.elements[1], all, Type::kPred);
}

// elect.sync leader|is_leader, members: the first of the members.
void EmitElect(OperandBuilder& to, CollectiveBuilder& collectives, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  const auto& operands = instruction.operands;
  const bool pair = operands.size() == 2 && operands[0].kind == Operand::Kind::kVector &&
                    operands[0].elements.size() == 2;
  if (!pair) return to.Unsupported(instruction, "operands");
  Value* active = code.Spread(code.MaskBits(collectives.Participants(instruction)));
  Value* members = code->CreateAnd(to.ReadVector(operands[1], Type::kB32), active);
  Value* leader = code->CreateBinaryIntrinsic(llvm::Intrinsic::cttz, members, code->getFalse());
  to.Write(instruction, operands[0].elements[0], leader, Type::kU32);
  Value* self = code.Spread(code->getInt32(0), 1, code.row_lanes());
  to.Write(instruction, operands[0].elements[1], code->CreateICmpEQ(self, leader), Type::kPred);
}

void EmitDeposit(OperandBuilder& /*to*/, CollectiveBuilder& collectives,
                 const Instruction& instruction) {
  collectives.Deposit(instruction);
}

void EmitActiveMask(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 1)) return;
  to.Write(instruction, instruction.operands[0], code.MaskBits(to.masks().Active(instruction)),
           Type::kB32);
}

// A block runs on one thread of the host, so a fence within a block needs no instruction.
void EmitFence(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  const bool block_only = instruction.Has(Modifier::kCta);
  code->CreateFence(llvm::AtomicOrdering::SequentiallyConsistent,
                    block_only ? llvm::SyncScope::SingleThread : llvm::SyncScope::System);
}

void EmitTrap(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  Value* mask = to.masks().Active(instruction);
  to.masks().IfAny(mask, [&] {
    to.context().Call(offsetof(RuntimeCalls, trap), code->getVoidTy(),
                      {to.context().pointer(), code.MaskBits(mask)});
  });
}

}  // namespace torpor::emulator
