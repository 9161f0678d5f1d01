// Integer arithmetic.
#include "emulator/exec/codegen/opcodes.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

namespace {

// .lo, .hi or .wide of a * b.
Value* Product(LaneBuilder& code, const Instruction& instruction, Value* a, Value* b) {
  if (!instruction.Has(Modifier::kHi) && !instruction.Has(Modifier::kWide)) {
    return code->CreateMul(a, b);
  }
  const bool is_signed = ptx::IsSigned(instruction.type());
  const unsigned bits = Bits(a);
  Value* product =
      code->CreateMul(code.Resize(a, 2 * bits, is_signed), code.Resize(b, 2 * bits, is_signed));
  if (instruction.Has(Modifier::kWide)) return product;
  return code.Resize(code->CreateLShr(product, Like(product, bits)), bits, false);
}

// A double holds 32-bit quotients exactly, and divides eight lanes at once.
Value* DivideNarrow(LaneBuilder& code, Value* a, Value* b, bool is_signed, bool remainder) {
  const unsigned bits = Bits(a);
  llvm::Type* real = Lanes(code->getDoubleTy());
  Value* zero = code->CreateICmpEQ(b, Like(b, 0));
  Value* divisor = code->CreateSelect(zero, Like(b, 1), b);
  Value* x = is_signed ? code->CreateSIToFP(a, real) : code->CreateUIToFP(a, real);
  Value* y = is_signed ? code->CreateSIToFP(divisor, real) : code->CreateUIToFP(divisor, real);
  Value* ratio = code->CreateFDiv(x, y);
  llvm::Type* wide = Lanes(code->getInt64Ty());
  Value* quotient = is_signed ? code->CreateFPToSI(ratio, wide) : code->CreateFPToUI(ratio, wide);
  quotient = code.Resize(quotient, bits, false);
  quotient = code->CreateSelect(zero, Like(b, ~std::uint64_t{0}), quotient);
  return remainder ? code->CreateSub(
                         a, code->CreateSelect(zero, Like(b, 0), code->CreateMul(quotient, b)))
                   : quotient;
}

// Processors trap on division by zero and on overflow; a GPU does not.
Value* Divide(LaneBuilder& code, Value* a, Value* b, bool is_signed, bool remainder) {
  Value* zero = code->CreateICmpEQ(b, Like(b, 0));
  Value* divisor = code->CreateSelect(zero, Like(b, 1), b);
  Value* overflow = nullptr;
  if (is_signed) {
    // x / -1 is -x, even on overflow.
    overflow = code->CreateICmpEQ(b, Like(b, ~std::uint64_t{0}));
    divisor = code->CreateSelect(overflow, Like(b, 1), divisor);
  }
  Value* quotient = is_signed ? code->CreateSDiv(a, divisor) : code->CreateUDiv(a, divisor);
  if (is_signed) quotient = code->CreateSelect(overflow, code->CreateNeg(a), quotient);
  quotient = code->CreateSelect(zero, Like(b, ~std::uint64_t{0}), quotient);
  if (!remainder) return quotient;
  return code->CreateSub(a, code->CreateMul(quotient, b));
}

// With .relu no less than 0.
Value* IntegerExtreme(LaneBuilder& code, const Instruction& instruction, Value* a, Value* b) {
  const bool minimum = instruction.opcode == Opcode::kMin;
  const auto id = ptx::IsSigned(instruction.type())
                      ? (minimum ? llvm::Intrinsic::smin : llvm::Intrinsic::smax)
                      : (minimum ? llvm::Intrinsic::umin : llvm::Intrinsic::umax);
  Value* result = code->CreateBinaryIntrinsic(id, a, b);
  if (!instruction.Has(Modifier::kRelu)) return result;
  return code->CreateBinaryIntrinsic(llvm::Intrinsic::smax, result, Like(result, 0));
}

// add, min and max of two 16-bit numbers in a register.
void EmitIntegerPair(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  const Type type = instruction.type();
  const bool add = instruction.opcode == Opcode::kAdd;
  const bool extreme = instruction.opcode == Opcode::kMin || instruction.opcode == Opcode::kMax;
  const bool sign_fits = !instruction.Has(Modifier::kRelu) || type == Type::kS16x2;
  if ((!add && !extreme) || !sign_fits || instruction.Has(Modifier::kSat)) {
    return to.Unsupported(instruction);
  }
  const auto halves = [&](const Operand& operand) {
    Value* words = to.Read(operand, Type::kB32);
    const unsigned count = IsVector(words) ? 2 * kWarpLanes : 2;
    return code->CreateBitCast(words, llvm::FixedVectorType::get(code->getInt16Ty(), count));
  };
  Value* a = halves(instruction.operands[1]);
  Value* b = halves(instruction.operands[2]);
  Value* result = add ? code->CreateAdd(a, b) : IntegerExtreme(code, instruction, a, b);
  result = code->CreateBitCast(result, to.Shaped(code->getInt32Ty()));
  to.Write(instruction, instruction.operands[0], result, Type::kB32);
}

}  // namespace

void EmitAddSub(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 3)) return;
  const Type type = instruction.type();
  const bool add = instruction.opcode == Opcode::kAdd;
  if (ptx::IsIntegerPair(type)) return EmitIntegerPair(to, instruction);
  Value* a = to.Read(instruction.operands[1], type);
  Value* b = to.Read(instruction.operands[2], type);
  if (instruction.Has(Modifier::kCc)) {
    // The carry register holds a borrow after a subtraction.
    Value* carry = add ? code->CreateICmpULT(code->CreateAdd(a, b), a) : code->CreateICmpULT(a, b);
    to.Write(instruction, instruction.operands[0],
             add ? code->CreateAdd(a, b) : code->CreateSub(a, b), type);
    return to.WriteRegister(instruction, to.source().function.carry, carry);
  }
  Value* result = nullptr;
  if (instruction.Has(Modifier::kSat)) {
    const auto id = ptx::IsSigned(type)
                        ? (add ? llvm::Intrinsic::sadd_sat : llvm::Intrinsic::ssub_sat)
                        : (add ? llvm::Intrinsic::uadd_sat : llvm::Intrinsic::usub_sat);
    result = code->CreateBinaryIntrinsic(id, a, b);
  } else {
    result = add ? code->CreateAdd(a, b) : code->CreateSub(a, b);
  }
  to.Write(instruction, instruction.operands[0], result, type);
}

// addc, subc, madc: a step of arithmetic wider than a register.
void EmitCarry(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  const bool multiply = instruction.opcode == Opcode::kMadc;
  if (!to.Expect(instruction, multiply ? 4 : 3)) return;
  const Type type = instruction.type();
  Value* a = to.Read(instruction.operands[1], type);
  Value* b = to.Read(instruction.operands[2], type);
  if (multiply) {
    a = Product(code, instruction, a, b);
    b = to.Read(instruction.operands[3], type);
  }
  Value* carry =
      code.Resize(to.registers().Read(to.source().function.carry, to.scalar()), Bits(a), false);
  Value* result = nullptr;
  Value* carry_out = nullptr;
  if (instruction.opcode == Opcode::kSubc) {
    Value* part = code->CreateSub(a, b);
    result = code->CreateSub(part, carry);
    carry_out = code->CreateOr(code->CreateICmpULT(a, b), code->CreateICmpULT(part, carry));
  } else {
    Value* part = code->CreateAdd(a, b);
    result = code->CreateAdd(part, carry);
    carry_out = code->CreateOr(code->CreateICmpULT(part, a), code->CreateICmpULT(result, part));
  }
  to.Write(instruction, instruction.operands[0], result, type);
  if (instruction.Has(Modifier::kCc)) {
    to.WriteRegister(instruction, to.source().function.carry, carry_out);
  }
}

void EmitMul(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 3)) return;
  const Type type = instruction.type();
  Value* a = to.Read(instruction.operands[1], type);
  Value* b = to.Read(instruction.operands[2], type);
  to.Write(instruction, instruction.operands[0], Product(code, instruction, a, b), type);
}

// .wide adds a number of twice the width.
void EmitMad(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 4)) return;
  const Type type = instruction.type();
  Value* product = Product(code, instruction, to.Read(instruction.operands[1], type),
                           to.Read(instruction.operands[2], type));
  Value* c = to.Read(instruction.operands[3], type);
  if (instruction.Has(Modifier::kWide)) {
    const Type wide = ptx::BitWidth(type) == 16 ? Type::kB32 : Type::kB64;
    c = to.Read(instruction.operands[3], wide);
  }
  Value* sum = instruction.Has(Modifier::kSat)
                   ? code->CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, product, c)
                   : code->CreateAdd(product, c);
  to.Write(instruction, instruction.operands[0], sum, type);
  if (instruction.Has(Modifier::kCc)) {
    to.WriteRegister(instruction, to.source().function.carry, code->CreateICmpULT(sum, product));
  }
}

// Takes the low 24 bits of both factors; .hi takes bits 16 to 47 of the product.
void EmitMul24(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  const bool add = instruction.opcode == Opcode::kMad24;
  if (!to.Expect(instruction, add ? 4 : 3)) return;
  const Type type = instruction.type();
  const bool is_signed = ptx::IsSigned(type);
  const auto narrow = [&](const Operand& operand) {
    Value* value = code->CreateShl(to.Read(operand, type), 8);
    value = is_signed ? code->CreateAShr(value, 8) : code->CreateLShr(value, 8);
    return code.Resize(value, 64, is_signed);
  };
  Value* product =
      code->CreateMul(narrow(instruction.operands[1]), narrow(instruction.operands[2]));
  if (instruction.Has(Modifier::kHi)) product = code->CreateLShr(product, Like(product, 16));
  Value* result = code.Resize(product, 32, false);
  if (add) {
    Value* c = to.Read(instruction.operands[3], type);
    result = instruction.Has(Modifier::kSat)
                 ? code->CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, result, c)
                 : code->CreateAdd(result, c);
  }
  to.Write(instruction, instruction.operands[0], result, type);
}

// Vectors of at most 32 bits divide as doubles; processors have no vector division of integers.
void EmitDivRem(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 3)) return;
  const Type type = instruction.type();
  const bool is_signed = ptx::IsSigned(type);
  Value* a = to.Read(instruction.operands[1], type);
  Value* b = to.Read(instruction.operands[2], type);
  const bool remainder = instruction.opcode == Opcode::kRem;
  const bool narrow = IsVector(a) && Bits(a) <= 32;
  Value* result = narrow ? DivideNarrow(code, a, b, is_signed, remainder)
                         : Divide(code, a, b, is_signed, remainder);
  to.Write(instruction, instruction.operands[0], result, type);
}

void EmitMinMax(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 3)) return;
  const Type type = instruction.type();
  if (ptx::IsIntegerPair(type)) return EmitIntegerPair(to, instruction);
  const bool relu = instruction.Has(Modifier::kRelu);
  if (ptx::BitWidth(type) < 16 || (relu && type != Type::kS32)) return to.Unsupported(instruction);
  to.Write(instruction, instruction.operands[0],
           IntegerExtreme(code, instruction, to.Read(instruction.operands[1], type),
                          to.Read(instruction.operands[2], type)),
           type);
}

void EmitAbsNeg(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 2)) return;
  const Type type = instruction.type();
  Value* a = to.Read(instruction.operands[1], type);
  Value* negative = code->CreateNeg(a);
  Value* result = negative;
  if (instruction.opcode == Opcode::kAbs) {
    result = code->CreateSelect(code->CreateICmpSLT(a, Like(a, 0)), negative, a);
  }
  to.Write(instruction, instruction.operands[0], result, type);
}

// |a - b| + c
void EmitSad(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 4)) return;
  const Type type = instruction.type();
  Value* a = to.Read(instruction.operands[1], type);
  Value* b = to.Read(instruction.operands[2], type);
  Value* less = ptx::IsSigned(type) ? code->CreateICmpSLT(a, b) : code->CreateICmpULT(a, b);
  Value* distance = code->CreateSelect(less, code->CreateSub(b, a), code->CreateSub(a, b));
  to.Write(instruction, instruction.operands[0],
           code->CreateAdd(distance, to.Read(instruction.operands[3], type)), type);
}

// dp4a: four products of bytes; dp2a: two of a 16-bit half and a byte.
void EmitDotProduct(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 4) || instruction.types.size() < 2) {
    return to.Unsupported(instruction);
  }
  Value* a = to.Read(instruction.operands[1], Type::kB32);
  Value* b = to.Read(instruction.operands[2], Type::kB32);
  Value* sum = to.Read(instruction.operands[3], Type::kB32);
  const bool four = instruction.opcode == Opcode::kDp4a;
  const unsigned a_bits = four ? 8 : 16;
  const unsigned b_offset = !four && instruction.Has(Modifier::kHi) ? 16 : 0;
  const auto field = [&](Value* value, unsigned offset, unsigned bits, bool is_signed) {
    value = code->CreateLShr(value, Like(value, offset));
    return code.Resize(code.Resize(value, bits, false), 32, is_signed);
  };
  for (unsigned i = 0; i < (four ? 4U : 2U); ++i) {
    Value* x = field(a, i * a_bits, a_bits, ptx::IsSigned(instruction.types[0]));
    Value* y = field(b, b_offset + i * 8, 8, ptx::IsSigned(instruction.types[1]));
    sum = code->CreateAdd(sum, code->CreateMul(x, y));
  }
  to.Write(instruction, instruction.operands[0], sum, Type::kB32);
}

}  // namespace torpor::emulator
