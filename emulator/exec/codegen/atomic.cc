// atom and red, lane after lane.
#include <llvm/Transforms/Utils/LowerAtomic.h>

#include "emulator/exec/codegen/float_values.h"
#include "emulator/exec/codegen/half_values.h"
#include "emulator/exec/codegen/opcodes.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

namespace {

using llvm::AtomicOrdering;
using llvm::AtomicRMWInst;

constexpr auto kOrder = AtomicOrdering::SequentiallyConsistent;

// LLVM's operation for the instruction; BAD_BINOP for compare-and-swap and unknown operations.
llvm::AtomicRMWInst::BinOp AtomicOperation(const Instruction& instruction, Type type) {
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

// Whether PTX defines the instruction's operation for `type`.
bool IsAtomic(const Instruction& instruction, Type type) {
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

// `bits` of a 16-bit float, or of a pair in 32 bits.
Value* CombineHalves(LaneBuilder& code, const Instruction& instruction, Value* a, Value* b,
                     Type type) {
  Value* result = nullptr;
  for (unsigned part = 0; part < (IsHalfPair(type) ? 2U : 1U); ++part) {
    const auto half = [&](Value* bits) {
      return WidenHalf(
          code,
          code.Resize(code->CreateLShr(bits, Like(bits, std::uint64_t{16} * part)), 16, false),
          type);
    };
    Value* value =
        instruction.Has(Modifier::kAdd)
            ? code->CreateFAdd(half(a), half(b))
            : Extreme(code, instruction, instruction.Has(Modifier::kMin), half(a), half(b));
    Value* narrow = code.Resize(NarrowHalf(code, value, type), Bits(a), false);
    result = part == 0 ? narrow : code->CreateOr(result, code->CreateShl(narrow, Like(narrow, 16)));
  }
  return result;
}

// Processors have no atomic addition of 16-bit floats: compare and exchange until no other thread
// came in between.
Value* AtomicHalf(LaneBuilder& code, const Instruction& instruction, Value* pointer,
                  Value* operand) {
  llvm::Type* type = operand->getType();
  const llvm::Align align(Bits(operand) / 8);
  llvm::BasicBlock* before = code->GetInsertBlock();
  llvm::BasicBlock* attempt = code.NewBlock("attempt");
  llvm::BasicBlock* done = code.NewBlock("exchanged");
  Value* first = code->CreateAlignedLoad(type, pointer, align);
  code->CreateBr(attempt);
  code->SetInsertPoint(attempt);
  llvm::PHINode* old = code->CreatePHI(type, 2);
  old->addIncoming(first, before);
  Value* next = CombineHalves(code, instruction, old, operand, instruction.type());
  Value* exchanged = code->CreateAtomicCmpXchg(pointer, old, next, align, kOrder, kOrder);
  old->addIncoming(code->CreateExtractValue(exchanged, 0), code->GetInsertBlock());
  code->CreateCondBr(code->CreateExtractValue(exchanged, 1), done, attempt);
  code->SetInsertPoint(done);
  return old;
}

Value* AtomicLane(LaneBuilder& code, const Instruction& instruction, Value* pointer, Value* operand,
                  Value* compare, llvm::Type* type) {
  const llvm::Align align(type->getPrimitiveSizeInBits() / 8);
  if (compare != nullptr) {
    Value* exchanged = code->CreateAtomicCmpXchg(pointer, compare, operand, align, kOrder, kOrder);
    return code->CreateExtractValue(exchanged, 0);
  }
  if (IsHalf(instruction.type())) return AtomicHalf(code, instruction, pointer, operand);
  const AtomicRMWInst::BinOp operation = AtomicOperation(instruction, instruction.type());
  return code->CreateAtomicRMW(operation, pointer, operand, align, kOrder);
}

// A block runs on one thread of the host, so plain loads and stores are atomic in shared memory.
Value* AtomicSharedLane(LaneBuilder& code, const Instruction& instruction, Value* pointer,
                        Value* operand, Value* compare, llvm::Type* type) {
  const llvm::Align align(type->getPrimitiveSizeInBits() / 8);
  Value* old = code->CreateAlignedLoad(type, pointer, align);
  const Type number = instruction.type();
  Value* changed = nullptr;
  if (compare != nullptr) {
    changed = code->CreateSelect(code->CreateICmpEQ(old, compare), operand, old);
  } else if (IsHalf(number)) {
    changed = CombineHalves(code, instruction, old, operand, number);
  } else {
    changed =
        llvm::buildAtomicRMWValue(AtomicOperation(instruction, number), code.ir(), old, operand);
  }
  code->CreateAlignedStore(changed, pointer, align);
  return old;
}

void EmitAtomicElement(OperandBuilder& to, MemoryAccess& memory, const Instruction& instruction,
                       unsigned index) {
  LaneBuilder& code = to.code();
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
  Value* mask = to.masks().Active(instruction);
  LaneAddress address =
      memory.addresses().Of(target, memory.addresses().SpaceOf(instruction, target));
  if (address.value == nullptr) return;
  address = memory.addresses().Advanced(address, std::uint64_t{index} * bits / 8);
  llvm::Type* element = real ? code.ScalarType(type) : code.IntType(bits);
  const auto read = [&](std::size_t operand) {
    Value* value = to.ReadVector(element_of(operand), type);
    return code.Spill(real ? value : code.ToInt(value));
  };
  Value* operands = read(first + (swap ? 2 : 1));
  Value* compares = swap ? read(first + 1) : nullptr;
  to.masks().IfAny(mask, [&] { memory.check().Check(address, bits / 8, mask); });
  Value* places = code.Spill(memory.addresses().LaneAddresses(address));
  Value* results = returns ? code.LaneArray(element) : nullptr;
  llvm::Type* number = address.value->getType()->getScalarType();
  code.ForEachLane(mask, [&](Value* lane) {
    Value* pointer = memory.addresses().Pointer(
        address, code->CreateLoad(number, code.LaneSlot(places, number, lane)));
    Value* operand = code->CreateLoad(element, code.LaneSlot(operands, element, lane));
    Value* compare =
        swap ? code->CreateLoad(element, code.LaneSlot(compares, element, lane)) : nullptr;
    Value* old = address.space == ptx::Space::kShared
                     ? AtomicSharedLane(code, instruction, pointer, operand, compare, element)
                     : AtomicLane(code, instruction, pointer, operand, compare, element);
    if (returns) code->CreateStore(old, code.LaneSlot(results, element, lane));
  });
  if (returns) to.Write(instruction, element_of(0), code.Unspill(results, element), type);
}

}  // namespace

// Each element of a vector is a separate atomic access.
void EmitAtomic(OperandBuilder& to, MemoryAccess& memory, const Instruction& instruction) {
  const std::size_t first = instruction.opcode == Opcode::kAtom ? 1 : 0;
  const bool swap = instruction.Has(Modifier::kCas);
  if (!to.Expect(instruction, first + (swap ? 3 : 2))) return;
  const unsigned count = instruction.vector_width();
  bool fits = IsAtomic(instruction, instruction.type()) &&
              instruction.operands[first].kind == Operand::Kind::kAddress;
  for (std::size_t i = 0; count > 1 && i < instruction.operands.size(); ++i) {
    if (i != first) fits = fits && instruction.operands[i].elements.size() == count;
  }
  if (!fits || (swap && count > 1)) return to.Unsupported(instruction);
  for (unsigned i = 0; i < count; ++i) EmitAtomicElement(to, memory, instruction, i);
}

}  // namespace torpor::emulator
