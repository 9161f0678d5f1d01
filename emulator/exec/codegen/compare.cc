// setp, set, selp, slct.
#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {
namespace {

using ptx::Modifier;
using Predicate = llvm::CmpInst::Predicate;

struct Comparison {
  Modifier modifier;
  Predicate is_signed;
  Predicate is_unsigned;
  Predicate real;
};

constexpr Predicate kNone = Predicate::BAD_ICMP_PREDICATE;
constexpr Comparison kComparisons[] = {
    {Modifier::kEq, Predicate::ICMP_EQ, Predicate::ICMP_EQ, Predicate::FCMP_OEQ},
    {Modifier::kNe, Predicate::ICMP_NE, Predicate::ICMP_NE, Predicate::FCMP_ONE},
    {Modifier::kLt, Predicate::ICMP_SLT, Predicate::ICMP_ULT, Predicate::FCMP_OLT},
    {Modifier::kLe, Predicate::ICMP_SLE, Predicate::ICMP_ULE, Predicate::FCMP_OLE},
    {Modifier::kGt, Predicate::ICMP_SGT, Predicate::ICMP_UGT, Predicate::FCMP_OGT},
    {Modifier::kGe, Predicate::ICMP_SGE, Predicate::ICMP_UGE, Predicate::FCMP_OGE},
    {Modifier::kLo, Predicate::ICMP_ULT, Predicate::ICMP_ULT, kNone},
    {Modifier::kLs, Predicate::ICMP_ULE, Predicate::ICMP_ULE, kNone},
    {Modifier::kHi, Predicate::ICMP_UGT, Predicate::ICMP_UGT, kNone},
    {Modifier::kHs, Predicate::ICMP_UGE, Predicate::ICMP_UGE, kNone},
    {Modifier::kEqu, kNone, kNone, Predicate::FCMP_UEQ},
    {Modifier::kNeu, kNone, kNone, Predicate::FCMP_UNE},
    {Modifier::kLtu, kNone, kNone, Predicate::FCMP_ULT},
    {Modifier::kLeu, kNone, kNone, Predicate::FCMP_ULE},
    {Modifier::kGtu, kNone, kNone, Predicate::FCMP_UGT},
    {Modifier::kGeu, kNone, kNone, Predicate::FCMP_UGE},
    {Modifier::kNum, kNone, kNone, Predicate::FCMP_ORD},
    {Modifier::kNan, kNone, kNone, Predicate::FCMP_UNO},
};

// The bits of what `set` gives for true.
std::uint64_t One(ptx::Type type) {
  switch (type) {
    case ptx::Type::kF16:
    case ptx::Type::kF16x2:
      return 0x3c00;
    case ptx::Type::kBf16:
    case ptx::Type::kBf16x2:
      return 0x3f80;
    case ptx::Type::kF32:
      return 0x3f800000;
    case ptx::Type::kF64:
      return 0x3ff0000000000000;
    default:
      return ~std::uint64_t{0};
  }
}

}  // namespace

// Of pairs, the halves `part`.
llvm::Value* FunctionEmitter::Compare(const Instruction& instruction, Type type, unsigned part) {
  if (IsHalf(type)) {
    return CompareValues(instruction, type,
                         ReadHalf(instruction, instruction.operands[1], type, part),
                         ReadHalf(instruction, instruction.operands[2], type, part));
  }
  return CompareValues(instruction, type, Flush(instruction, Read(instruction.operands[1], type)),
                       Flush(instruction, Read(instruction.operands[2], type)));
}

llvm::Value* FunctionEmitter::CompareValues(const Instruction& instruction, Type type, Value* a,
                                            Value* b) {
  for (const Comparison& comparison : kComparisons) {
    if (!instruction.Has(comparison.modifier)) continue;
    const bool real = a->getType()->isFPOrFPVectorTy();
    const Predicate predicate = real                  ? comparison.real
                                : ptx::IsSigned(type) ? comparison.is_signed
                                                      : comparison.is_unsigned;
    if (predicate != kNone) return b_.CreateCmp(predicate, a, b);
  }
  Unsupported(instruction, "comparison");
  return b_.CreateIsNull(ToInt(a));
}

// (a cmp b) op c
llvm::Value* FunctionEmitter::Combine(const Instruction& instruction, Value* compared,
                                      std::size_t operand) {
  if (instruction.operands.size() <= operand) return compared;
  Value* c = Read(instruction.operands[operand], Type::kPred);
  if (instruction.Has(Modifier::kAnd)) return b_.CreateAnd(compared, c);
  if (instruction.Has(Modifier::kOr)) return b_.CreateOr(compared, c);
  return b_.CreateXor(compared, c);
}

void FunctionEmitter::EmitSetp(const Instruction& instruction) {
  if (!Expect(instruction, 3)) return;
  const Type type = instruction.type();
  Value* compared = Compare(instruction, type, 0);
  const Operand& destination = instruction.operands[0];
  if (destination.kind != Operand::Kind::kVector) {
    if (IsHalfPair(type)) return Unsupported(instruction, "one predicate for a pair");
    return Write(instruction, destination, Combine(instruction, compared, 3), Type::kPred);
  }
  // p|q: of pairs one predicate a half, else the comparison and its opposite.
  Value* second = IsHalfPair(type) ? Compare(instruction, type, 1) : b_.CreateNot(compared);
  Value* both[] = {Combine(instruction, compared, 3), Combine(instruction, second, 3)};
  for (unsigned i = 0; i < 2 && i < destination.elements.size(); ++i) {
    Write(instruction, destination.elements[i], both[i], Type::kPred);
  }
}

void FunctionEmitter::EmitSet(const Instruction& instruction) {
  if (!Expect(instruction, 3) || instruction.types.size() != 2) return Unsupported(instruction);
  const Type type = instruction.types[0];
  const Type source = instruction.types[1];
  const unsigned bits = ptx::BitWidth(type);
  const bool pair = IsHalfPair(source);
  const bool matches = pair ? bits == 32 && type != Type::kF32 : !IsHalfPair(type);
  if (!matches) return Unsupported(instruction);
  // Of a pair, each half of the result tells of one comparison.
  std::uint64_t truth = One(type);
  if (pair) truth &= 0xffff;
  Value* result = nullptr;
  for (unsigned part = 0; part < (pair ? 2U : 1U); ++part) {
    Value* compared = Combine(instruction, Compare(instruction, source, part), 3);
    llvm::Type* shaped = IsVector(compared) ? Lanes(IntType(bits)) : IntType(bits);
    Value* half =
        b_.CreateSelect(compared, Constant(shaped, truth << (16 * part)), Constant(shaped, 0));
    result = part == 0 ? half : b_.CreateOr(result, half);
  }
  Write(instruction, instruction.operands[0], result, type);
}

void FunctionEmitter::EmitSelp(const Instruction& instruction) {
  if (!Expect(instruction, 4)) return;
  const Type type = instruction.type();
  Value* choice = Read(instruction.operands[3], Type::kPred);
  Value* result = b_.CreateSelect(choice, Read(instruction.operands[1], type),
                                  Read(instruction.operands[2], type));
  Write(instruction, instruction.operands[0], result, type);
}

// slct: a if c >= 0, else b.
void FunctionEmitter::EmitSlct(const Instruction& instruction) {
  if (!Expect(instruction, 4) || instruction.types.size() != 2) return Unsupported(instruction);
  const Type type = instruction.types[0];
  Value* c = Flush(instruction, Read(instruction.operands[3], instruction.types[1]));
  Value* choice = c->getType()->isFPOrFPVectorTy()
                      ? b_.CreateFCmpOGE(c, llvm::ConstantFP::getZero(c->getType()))
                      : b_.CreateICmpSGE(c, Like(c, 0));
  Value* result = b_.CreateSelect(choice, Read(instruction.operands[1], type),
                                  Read(instruction.operands[2], type));
  Write(instruction, instruction.operands[0], result, type);
}

}  // namespace torpor::emulator
