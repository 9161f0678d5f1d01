// cp.async: a copy from global to shared memory. It is complete when the instruction is, so
// committing and waiting are nothing.
#include <array>

#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

using ptx::Space;

// What a copy moves of the word at `offset`: the bytes that the fourth operand leaves.
llvm::Value* FunctionEmitter::AsyncWord(const Operand& fourth, Address from, std::uint64_t offset,
                                        Value* mask) {
  const bool ignores =
      fourth.kind == Operand::Kind::kRegister && function_.registers[fourth.reg] == Type::kPred;
  Value* wanted = nullptr;
  Value* keep = nullptr;
  if (ignores) {
    wanted = b_.CreateAnd(mask, b_.CreateNot(ReadVector(fourth, Type::kPred)));
  } else {
    Value* available = ReadVector(fourth, Type::kU32);
    Value* start = Like(available, offset);
    wanted = b_.CreateAnd(mask, b_.CreateICmpUGT(available, start));
    Value* bytes = b_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, available, start);
    bytes = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, bytes, Like(bytes, 4));
    Value* one = Spread(b_.getInt64(1));
    keep = b_.CreateShl(one, b_.CreateShl(Resize(bytes, 64, false), Like(one, 3)));
    keep = Resize(b_.CreateSub(keep, one), 32, false);
  }
  from = Advanced(from, offset);
  from.value = LaneAddresses(from);
  from.shape = ptx::LaneShape::Varying();
  Value* zero = llvm::Constant::getNullValue(Lanes(b_.getInt32Ty()));
  Value* loaded = Load(from, {b_.getInt32Ty(), 4, 1}, wanted)[0];
  Value* copied = b_.CreateSelect(wanted, loaded, zero);
  return keep == nullptr ? copied : b_.CreateAnd(copied, keep);
}

// Copies whose addresses follow no pattern, which mostly a part of the lanes do.
void FunctionEmitter::CopyByLane(const Address& to, const Address& from, unsigned words,
                                 Value* mask) {
  const auto bytes = words * 4;
  CheckAccess(from, bytes, mask);
  CheckAccess(to, bytes, mask);
  llvm::Type* type = llvm::FixedVectorType::get(b_.getInt32Ty(), words);
  Value* sources = Spill(LaneAddresses(from));
  Value* targets = Spill(LaneAddresses(to));
  ForEachLane(mask, [&](Value* lane) {
    Value* source = b_.CreateLoad(b_.getInt64Ty(), LaneSlot(sources, b_.getInt64Ty(), lane));
    Value* target = b_.CreateLoad(b_.getInt32Ty(), LaneSlot(targets, b_.getInt32Ty(), lane));
    Value* copied = b_.CreateAlignedLoad(type, Pointer(from, source), llvm::Align(bytes));
    b_.CreateAlignedStore(copied, Pointer(to, target), llvm::Align(4));
  });
}

// cp.async.ca.shared.global [to], [from], bytes{, source bytes or whether to ignore the source}
void FunctionEmitter::EmitAsyncCopy(const Instruction& instruction) {
  if (!instruction.Has(Modifier::kAsync)) return Unsupported(instruction);
  if (instruction.Has(Modifier::kCommitGroup) || instruction.Has(Modifier::kWaitGroup) ||
      instruction.Has(Modifier::kWaitAll)) {
    return;
  }
  if (instruction.Has(Modifier::kMbarrier)) return EmitCopyArrival(instruction);
  if (instruction.Has(Modifier::kBulk)) return EmitBulkCopy(instruction);
  const auto& operands = instruction.operands;
  const bool plain = instruction.Has(Modifier::kShared) && instruction.Has(Modifier::kGlobal) &&
                     (operands.size() == 3 || operands.size() == 4) &&
                     operands[0].kind == Operand::Kind::kAddress &&
                     operands[1].kind == Operand::Kind::kAddress;
  const auto bytes = plain ? lanes_.ConstantOf(operands[2]) : std::nullopt;
  if (!bytes || (*bytes != 4 && *bytes != 8 && *bytes != 16)) return Unsupported(instruction);
  const auto words = static_cast<unsigned>(*bytes / 4);
  const Access access{b_.getInt32Ty(), 4, words};
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    const Address to = AddressOf(operands[0], Space::kShared);
    const Address from = AddressOf(operands[1], Space::kGlobal);
    if (to.value == nullptr || from.value == nullptr) return;
    const bool copies_all = operands.size() == 3 || lanes_.ConstantOf(operands[3]) >= bytes;
    if (copies_all && !IsContiguous(from, access) && words > 1) {
      return CopyByLane(to, from, words, mask);
    }
    if (copies_all) return Store(to, access, Load(from, access, mask), mask);
    // What the source lacks is zero.
    for (unsigned i = 0; i < words; ++i) {
      const std::uint64_t offset = std::uint64_t{4} * i;
      Value* word = AsyncWord(operands[3], from, offset, mask);
      Store(Advanced(to, offset), {b_.getInt32Ty(), 4, 1}, {word}, mask);
    }
  });
}

}  // namespace torpor::emulator
