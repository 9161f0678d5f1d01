// atom and red: one lane after the other.
#include <llvm/Transforms/Utils/LowerAtomic.h>

#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

using llvm::AtomicOrdering;
using llvm::AtomicRMWInst;
using ptx::Opcode;

llvm::AtomicRMWInst::BinOp FunctionEmitter::AtomicOperation(const Instruction& instruction,
                                                            Type type) const {
  const bool real = ptx::IsFloat(type);
  const bool is_signed = ptx::IsSigned(type);
  if (instruction.Has(Modifier::kAdd)) return real ? AtomicRMWInst::FAdd : AtomicRMWInst::Add;
  if (instruction.Has(Modifier::kAnd)) return AtomicRMWInst::And;
  if (instruction.Has(Modifier::kOr)) return AtomicRMWInst::Or;
  if (instruction.Has(Modifier::kXor)) return AtomicRMWInst::Xor;
  if (instruction.Has(Modifier::kExch)) return AtomicRMWInst::Xchg;
  if (instruction.Has(Modifier::kInc)) return AtomicRMWInst::UIncWrap;
  if (instruction.Has(Modifier::kDec)) return AtomicRMWInst::UDecWrap;
  if (instruction.Has(Modifier::kMin)) return is_signed ? AtomicRMWInst::Min : AtomicRMWInst::UMin;
  if (instruction.Has(Modifier::kMax)) return is_signed ? AtomicRMWInst::Max : AtomicRMWInst::UMax;
  return AtomicRMWInst::BAD_BINOP;
}

llvm::Value* FunctionEmitter::AtomicLane(const Instruction& instruction, Value* pointer,
                                         Value* operand, Value* compare, llvm::Type* type) {
  const llvm::Align align(type->getPrimitiveSizeInBits() / 8);
  constexpr auto kOrder = AtomicOrdering::SequentiallyConsistent;
  if (compare != nullptr) {
    Value* exchanged = b_.CreateAtomicCmpXchg(pointer, compare, operand, align, kOrder, kOrder);
    return b_.CreateExtractValue(exchanged, 0);
  }
  const AtomicRMWInst::BinOp operation = AtomicOperation(instruction, instruction.type());
  return b_.CreateAtomicRMW(operation, pointer, operand, align, kOrder);
}

// A block runs on one thread of the host: nobody comes between.
llvm::Value* FunctionEmitter::AtomicSharedLane(const Instruction& instruction, Value* pointer,
                                               Value* operand, Value* compare, llvm::Type* type) {
  const llvm::Align align(type->getPrimitiveSizeInBits() / 8);
  Value* old = b_.CreateAlignedLoad(type, pointer, align);
  Value* changed = compare != nullptr
                       ? b_.CreateSelect(b_.CreateICmpEQ(old, compare), operand, old)
                       : llvm::buildAtomicRMWValue(AtomicOperation(instruction, instruction.type()),
                                                   b_, old, operand);
  b_.CreateAlignedStore(changed, pointer, align);
  return old;
}

void FunctionEmitter::EmitAtomic(const Instruction& instruction) {
  const bool returns = instruction.opcode == Opcode::kAtom;
  const bool swap = instruction.Has(Modifier::kCas);
  const std::size_t first = returns ? 1 : 0;
  if (!Expect(instruction, first + (swap ? 3 : 2))) return;
  const Type type = instruction.type();
  const unsigned bits = ptx::BitWidth(type);
  const bool plain_type = bits == 32 || bits == 64 || (bits == 16 && swap);
  const Operand& target = instruction.operands[first];
  const bool real = type == Type::kF32 || type == Type::kF64;
  if (!plain_type || instruction.vector_width() != 1 || (ptx::IsFloat(type) && !real) ||
      target.kind != Operand::Kind::kAddress ||
      (!swap && AtomicOperation(instruction, type) == AtomicRMWInst::BAD_BINOP) ||
      (real && !instruction.Has(Modifier::kAdd) && !instruction.Has(Modifier::kExch))) {
    return Unsupported(instruction);
  }
  Value* mask = ActiveMask(instruction);
  const Address address = AddressOf(target, SpaceOf(instruction, target));
  if (address.value == nullptr) return;
  llvm::Type* element = swap ? IntType(bits) : ScalarType(type);
  const Type operand_type = swap ? (bits == 64   ? Type::kB64
                                    : bits == 32 ? Type::kB32
                                                 : Type::kB16)
                                 : type;
  Value* operands = Spill(ReadVector(instruction.operands[first + (swap ? 2 : 1)], operand_type));
  Value* compares =
      swap ? Spill(ReadVector(instruction.operands[first + 1], operand_type)) : nullptr;
  IfAny(mask, [&] { CheckAccess(address, bits / 8, mask); });
  Value* places = Spill(LaneAddresses(address));
  Value* results = returns ? LaneArray(element) : nullptr;
  llvm::Type* index = address.value->getType()->getScalarType();
  ForEachLane(mask, [&](Value* lane) {
    Value* pointer = Pointer(address, b_.CreateLoad(index, LaneSlot(places, index, lane)));
    Value* operand = b_.CreateLoad(element, LaneSlot(operands, element, lane));
    Value* compare = swap ? b_.CreateLoad(element, LaneSlot(compares, element, lane)) : nullptr;
    Value* old = address.space == ptx::Space::kShared
                     ? AtomicSharedLane(instruction, pointer, operand, compare, element)
                     : AtomicLane(instruction, pointer, operand, compare, element);
    if (returns) b_.CreateStore(old, LaneSlot(results, element, lane));
  });
  if (returns) Write(instruction, instruction.operands[0], Unspill(results, element), type);
}

}  // namespace torpor::emulator
