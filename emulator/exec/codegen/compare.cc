// setp, set, selp, slct.
#include "emulator/exec/codegen/comparison.h"
#include "emulator/exec/codegen/float_values.h"
#include "emulator/exec/codegen/half_values.h"
#include "emulator/exec/codegen/opcodes.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Operand;
using ptx::Type;

namespace {

// The bits of true as a result of `set`.
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

// Of pairs, the halves `part`.
Value* Compare(OperandBuilder& to, const Instruction& instruction, Type type, unsigned part) {
  LaneBuilder& code = to.code();
  if (IsHalf(type)) {
    return CompareValues(to, instruction, type,
                         ReadHalf(to, instruction, instruction.operands[1], type, part),
                         ReadHalf(to, instruction, instruction.operands[2], type, part));
  }
  return CompareValues(to, instruction, type,
                       Flush(code, instruction, to.Read(instruction.operands[1], type)),
                       Flush(code, instruction, to.Read(instruction.operands[2], type)));
}

// (a cmp b) op c
Value* Combine(OperandBuilder& to, const Instruction& instruction, Value* compared,
               std::size_t operand) {
  LaneBuilder& code = to.code();
  if (instruction.operands.size() <= operand) return compared;
  Value* c = to.Read(instruction.operands[operand], Type::kPred);
  if (instruction.Has(Modifier::kAnd)) return code->CreateAnd(compared, c);
  if (instruction.Has(Modifier::kOr)) return code->CreateOr(compared, c);
  return code->CreateXor(compared, c);
}

}  // namespace

void EmitSetp(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 3)) return;
  const Type type = instruction.type();
  Value* compared = Compare(to, instruction, type, 0);
  const Operand& destination = instruction.operands[0];
  if (destination.kind != Operand::Kind::kVector) {
    if (IsHalfPair(type)) return to.Unsupported(instruction, "one predicate for a pair");
    return to.Write(instruction, destination, Combine(to, instruction, compared, 3), Type::kPred);
  }
  // p
  // q: for pairs the comparisons of both halves, else the comparison and the negation.
  Value* second = IsHalfPair(type) ? Compare(to, instruction, type, 1) : code->CreateNot(compared);
  Value* both[] = {Combine(to, instruction, compared, 3), Combine(to, instruction, second, 3)};
  for (unsigned i = 0; i < 2 && i < destination.elements.size(); ++i) {
    to.Write(instruction, destination.elements[i], both[i], Type::kPred);
  }
}

// Results are all ones for integer types, 1.0 for floats, and 0 for false.
void EmitSet(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 3) || instruction.types.size() != 2) {
    return to.Unsupported(instruction);
  }
  const Type type = instruction.types[0];
  const Type source = instruction.types[1];
  const unsigned bits = ptx::BitWidth(type);
  const bool pair = IsHalfPair(source);
  const bool matches = pair ? bits == 32 && type != Type::kF32 : !IsHalfPair(type);
  if (!matches) return to.Unsupported(instruction);
  // For a pair, each half of the result holds a comparison.
  std::uint64_t truth = One(type);
  if (pair) truth &= 0xffff;
  Value* result = nullptr;
  for (unsigned part = 0; part < (pair ? 2U : 1U); ++part) {
    Value* compared = Combine(to, instruction, Compare(to, instruction, source, part), 3);
    llvm::Type* shaped = IsVector(compared) ? Lanes(code.IntType(bits)) : code.IntType(bits);
    Value* half =
        code->CreateSelect(compared, Constant(shaped, truth << (16 * part)), Constant(shaped, 0));
    result = part == 0 ? half : code->CreateOr(result, half);
  }
  to.Write(instruction, instruction.operands[0], result, type);
}

void EmitSelp(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 4)) return;
  const Type type = instruction.type();
  Value* choice = to.Read(instruction.operands[3], Type::kPred);
  Value* result = code->CreateSelect(choice, to.Read(instruction.operands[1], type),
                                     to.Read(instruction.operands[2], type));
  to.Write(instruction, instruction.operands[0], result, type);
}

// slct d, a, b, c: a if c >= 0, otherwise b.
void EmitSlct(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 4) || instruction.types.size() != 2) {
    return to.Unsupported(instruction);
  }
  const Type type = instruction.types[0];
  Value* c = Flush(code, instruction, to.Read(instruction.operands[3], instruction.types[1]));
  Value* choice = c->getType()->isFPOrFPVectorTy()
                      ? code->CreateFCmpOGE(c, llvm::ConstantFP::getZero(c->getType()))
                      : code->CreateICmpSGE(c, Like(c, 0));
  Value* result = code->CreateSelect(choice, to.Read(instruction.operands[1], type),
                                     to.Read(instruction.operands[2], type));
  to.Write(instruction, instruction.operands[0], result, type);
}

}  // namespace torpor::emulator
