// cp.async: a copy from global to shared memory. It is complete when the instruction is, so
// committing and waiting are nothing.

#include "emulator/exec/codegen/opcodes.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

namespace {

// The word at `offset` of a copy's source, with zeros for bytes that the fourth operand excludes.
Value* AsyncWord(OperandBuilder& to, MemoryAccess& memory, const Operand& fourth, LaneAddress from,
                 std::uint64_t offset, Value* mask) {
  LaneBuilder& code = to.code();
  const bool ignores = fourth.kind == Operand::Kind::kRegister &&
                       to.source().function.registers[fourth.reg] == Type::kPred;
  Value* wanted = nullptr;
  Value* keep = nullptr;
  if (ignores) {
    wanted = code->CreateAnd(mask, code->CreateNot(to.ReadVector(fourth, Type::kPred)));
  } else {
    Value* available = to.ReadVector(fourth, Type::kU32);
    Value* start = Like(available, offset);
    wanted = code->CreateAnd(mask, code->CreateICmpUGT(available, start));
    Value* bytes = code->CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, available, start);
    bytes = code->CreateBinaryIntrinsic(llvm::Intrinsic::umin, bytes, Like(bytes, 4));
    Value* one = code.Spread(code->getInt64(1));
    keep = code->CreateShl(one, code->CreateShl(code.Resize(bytes, 64, false), Like(one, 3)));
    keep = code.Resize(code->CreateSub(keep, one), 32, false);
  }
  from = memory.addresses().Advanced(from, offset);
  from.value = memory.addresses().LaneAddresses(from);
  from.shape = ptx::LaneShape::Varying();
  Value* zero = llvm::Constant::getNullValue(Lanes(code->getInt32Ty()));
  Value* loaded = memory.Load(from, {code->getInt32Ty(), 4, 1}, wanted)[0];
  Value* copied = code->CreateSelect(wanted, loaded, zero);
  return keep == nullptr ? copied : code->CreateAnd(copied, keep);
}

// Copies at addresses without a pattern. Usually only some of the lanes are active.
void CopyByLane(LaneBuilder& code, MemoryAccess& memory, const LaneAddress& destination,
                const LaneAddress& from, unsigned words, Value* mask) {
  const auto bytes = words * 4;
  memory.check().Check(from, bytes, mask);
  memory.check().Check(destination, bytes, mask);
  llvm::Type* type = llvm::FixedVectorType::get(code->getInt32Ty(), words);
  Value* sources = code.Spill(memory.addresses().LaneAddresses(from));
  Value* targets = code.Spill(memory.addresses().LaneAddresses(destination));
  code.ForEachLane(mask, [&](Value* lane) {
    Value* source =
        code->CreateLoad(code->getInt64Ty(), code.LaneSlot(sources, code->getInt64Ty(), lane));
    Value* target =
        code->CreateLoad(code->getInt32Ty(), code.LaneSlot(targets, code->getInt32Ty(), lane));
    Value* copied =
        code->CreateAlignedLoad(type, memory.addresses().Pointer(from, source), llvm::Align(bytes));
    code->CreateAlignedStore(copied, memory.addresses().Pointer(destination, target),
                             llvm::Align(4));
  });
}

}  // namespace

// cp.async.ca.shared.global [to], [from], bytes{, source bytes or whether to ignore the source}
void EmitAsyncCopy(OperandBuilder& to, MemoryAccess& memory, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!instruction.Has(Modifier::kAsync)) return to.Unsupported(instruction);
  if (instruction.Has(Modifier::kCommitGroup) || instruction.Has(Modifier::kWaitGroup) ||
      instruction.Has(Modifier::kWaitAll)) {
    return;
  }
  if (instruction.Has(Modifier::kMbarrier)) return EmitCopyArrival(to, memory, instruction);
  if (instruction.Has(Modifier::kBulk)) return EmitBulkCopy(to, memory, instruction);
  const auto& operands = instruction.operands;
  const bool plain = instruction.Has(Modifier::kShared) && instruction.Has(Modifier::kGlobal) &&
                     (operands.size() == 3 || operands.size() == 4) &&
                     operands[0].kind == Operand::Kind::kAddress &&
                     operands[1].kind == Operand::Kind::kAddress;
  const auto bytes = plain ? to.source().lanes.ConstantOf(operands[2]) : std::nullopt;
  if (!bytes || (*bytes != 4 && *bytes != 8 && *bytes != 16)) return to.Unsupported(instruction);
  const auto words = static_cast<unsigned>(*bytes / 4);
  const Access access{code->getInt32Ty(), 4, words};
  Value* mask = to.masks().Active(instruction);
  to.masks().IfAny(mask, [&] {
    const LaneAddress destination = memory.addresses().Of(operands[0], Space::kShared);
    const LaneAddress from = memory.addresses().Of(operands[1], Space::kGlobal);
    if (destination.value == nullptr || from.value == nullptr) return;
    const bool copies_all =
        operands.size() == 3 || to.source().lanes.ConstantOf(operands[3]) >= bytes;
    if (copies_all && !memory.IsContiguous(from, access) && words > 1) {
      return CopyByLane(code, memory, destination, from, words, mask);
    }
    if (copies_all) return memory.Store(destination, access, memory.Load(from, access, mask), mask);
    // Bytes missing in the source are zero.
    for (unsigned i = 0; i < words; ++i) {
      const std::uint64_t offset = std::uint64_t{4} * i;
      Value* word = AsyncWord(to, memory, operands[3], from, offset, mask);
      memory.Store(memory.addresses().Advanced(destination, offset), {code->getInt32Ty(), 4, 1},
                   {word}, mask);
    }
  });
}

}  // namespace torpor::emulator
