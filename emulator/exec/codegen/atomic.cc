// atom and red: one lane after the other.
#include <llvm/Transforms/Utils/LowerAtomic.h>

#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

using llvm::AtomicOrdering;
using llvm::AtomicRMWInst;
using ptx::Opcode;

namespace {

constexpr auto kOrder = AtomicOrdering::SequentiallyConsistent;

}  // namespace

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

bool FunctionEmitter::IsAtomic(const Instruction& instruction, Type type) const {
  const unsigned bits = ptx::BitWidth(type);
  if (instruction.Has(Modifier::kCas)) return bits >= 16 && bits <= 128 && !ptx::IsFloat(type);
  if (instruction.Has(Modifier::kExch)) return bits >= 32 && bits <= 128 && !ptx::IsFloat(type);
  const bool extreme = instruction.Has(Modifier::kMin) || instruction.Has(Modifier::kMax);
  if (IsHalf(type)) return instruction.Has(Modifier::kAdd) || extreme;
  if (ptx::IsFloat(type)) {
    return (type == Type::kF32 || type == Type::kF64) && instruction.Has(Modifier::kAdd);
  }
  return (bits == 32 || bits == 64) &&
         AtomicOperation(instruction, type) != AtomicRMWInst::BAD_BINOP;
}

llvm::Value* FunctionEmitter::AtomicLane(const Instruction& instruction, Value* pointer,
                                         Value* operand, Value* compare, llvm::Type* type) {
  const llvm::Align align(type->getPrimitiveSizeInBits() / 8);
  if (compare != nullptr) {
    Value* exchanged = b_.CreateAtomicCmpXchg(pointer, compare, operand, align, kOrder, kOrder);
    return b_.CreateExtractValue(exchanged, 0);
  }
  if (IsHalf(instruction.type())) return AtomicHalf(instruction, pointer, operand);
  const AtomicRMWInst::BinOp operation = AtomicOperation(instruction, instruction.type());
  return b_.CreateAtomicRMW(operation, pointer, operand, align, kOrder);
}

// A block runs on one thread of the host: nobody comes between.
llvm::Value* FunctionEmitter::AtomicSharedLane(const Instruction& instruction, Value* pointer,
                                               Value* operand, Value* compare, llvm::Type* type) {
  const llvm::Align align(type->getPrimitiveSizeInBits() / 8);
  Value* old = b_.CreateAlignedLoad(type, pointer, align);
  const Type number = instruction.type();
  Value* changed = nullptr;
  if (compare != nullptr) {
    changed = b_.CreateSelect(b_.CreateICmpEQ(old, compare), operand, old);
  } else if (IsHalf(number)) {
    changed = CombineHalves(instruction, old, operand, number);
  } else {
    changed = llvm::buildAtomicRMWValue(AtomicOperation(instruction, number), b_, old, operand);
  }
  b_.CreateAlignedStore(changed, pointer, align);
  return old;
}

// No processor adds 16-bit floats atomically: try until nobody came in between.
llvm::Value* FunctionEmitter::AtomicHalf(const Instruction& instruction, Value* pointer,
                                         Value* operand) {
  llvm::Type* type = operand->getType();
  const llvm::Align align(Bits(operand) / 8);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* attempt = NewBlock("attempt");
  llvm::BasicBlock* done = NewBlock("exchanged");
  Value* first = b_.CreateAlignedLoad(type, pointer, align);
  b_.CreateBr(attempt);
  b_.SetInsertPoint(attempt);
  llvm::PHINode* old = b_.CreatePHI(type, 2);
  old->addIncoming(first, before);
  Value* next = CombineHalves(instruction, old, operand, instruction.type());
  Value* exchanged = b_.CreateAtomicCmpXchg(pointer, old, next, align, kOrder, kOrder);
  old->addIncoming(b_.CreateExtractValue(exchanged, 0), b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateExtractValue(exchanged, 1), done, attempt);
  b_.SetInsertPoint(done);
  return old;
}

// Of one 16-bit float, or of two in 32 bits.
llvm::Value* FunctionEmitter::CombineHalves(const Instruction& instruction, Value* a, Value* b,
                                            Type type) {
  Value* result = nullptr;
  for (unsigned part = 0; part < (IsHalfPair(type) ? 2U : 1U); ++part) {
    const auto half = [&](Value* bits) {
      return WidenHalf(Resize(b_.CreateLShr(bits, Like(bits, std::uint64_t{16} * part)), 16, false),
                       type);
    };
    Value* value = instruction.Has(Modifier::kAdd)
                       ? b_.CreateFAdd(half(a), half(b))
                       : Extreme(instruction, instruction.Has(Modifier::kMin), half(a), half(b));
    Value* narrow = Resize(NarrowHalf(value, type), Bits(a), false);
    result = part == 0 ? narrow : b_.CreateOr(result, b_.CreateShl(narrow, Like(narrow, 16)));
  }
  return result;
}

// Each element of a vector is an atomic access of its own.
void FunctionEmitter::EmitAtomic(const Instruction& instruction) {
  const std::size_t first = instruction.opcode == Opcode::kAtom ? 1 : 0;
  const bool swap = instruction.Has(Modifier::kCas);
  if (!Expect(instruction, first + (swap ? 3 : 2))) return;
  const unsigned count = instruction.vector_width();
  bool fits = IsAtomic(instruction, instruction.type()) &&
              instruction.operands[first].kind == Operand::Kind::kAddress;
  for (std::size_t i = 0; count > 1 && i < instruction.operands.size(); ++i) {
    if (i != first) fits = fits && instruction.operands[i].elements.size() == count;
  }
  if (!fits || (swap && count > 1)) return Unsupported(instruction);
  for (unsigned i = 0; i < count; ++i) EmitAtomicElement(instruction, i);
}

void FunctionEmitter::EmitAtomicElement(const Instruction& instruction, unsigned index) {
  const bool returns = instruction.opcode == Opcode::kAtom;
  const bool swap = instruction.Has(Modifier::kCas);
  const std::size_t first = returns ? 1 : 0;
  const auto element_of = [&](std::size_t operand) -> const Operand& {
    const Operand& whole = instruction.operands[operand];
    return instruction.vector_width() == 1 ? whole : whole.elements[index];
  };
  const Type type = instruction.type();
  const unsigned bits = ptx::BitWidth(type);
  const bool real = type == Type::kF32 || type == Type::kF64;
  const Operand& target = instruction.operands[first];
  Value* mask = ActiveMask(instruction);
  Address address = AddressOf(target, SpaceOf(instruction, target));
  if (address.value == nullptr) return;
  address = Advanced(address, std::uint64_t{index} * bits / 8);
  llvm::Type* element = real ? ScalarType(type) : IntType(bits);
  const auto read = [&](std::size_t operand) {
    Value* value = ReadVector(element_of(operand), type);
    return Spill(real ? value : ToInt(value));
  };
  Value* operands = read(first + (swap ? 2 : 1));
  Value* compares = swap ? read(first + 1) : nullptr;
  IfAny(mask, [&] { CheckAccess(address, bits / 8, mask); });
  Value* places = Spill(LaneAddresses(address));
  Value* results = returns ? LaneArray(element) : nullptr;
  llvm::Type* number = address.value->getType()->getScalarType();
  ForEachLane(mask, [&](Value* lane) {
    Value* pointer = Pointer(address, b_.CreateLoad(number, LaneSlot(places, number, lane)));
    Value* operand = b_.CreateLoad(element, LaneSlot(operands, element, lane));
    Value* compare = swap ? b_.CreateLoad(element, LaneSlot(compares, element, lane)) : nullptr;
    Value* old = address.space == ptx::Space::kShared
                     ? AtomicSharedLane(instruction, pointer, operand, compare, element)
                     : AtomicLane(instruction, pointer, operand, compare, element);
    if (returns) b_.CreateStore(old, LaneSlot(results, element, lane));
  });
  if (returns) Write(instruction, element_of(0), Unspill(results, element), type);
}

}  // namespace torpor::emulator
