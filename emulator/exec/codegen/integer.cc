// Integer arithmetic.
#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

using ptx::Opcode;

void FunctionEmitter::EmitAddSub(const Instruction& instruction) {
  if (!Expect(instruction, 3)) return;
  const Type type = instruction.type();
  const bool add = instruction.opcode == Opcode::kAdd;
  if (ptx::IsIntegerPair(type)) return EmitIntegerPair(instruction);
  Value* a = Read(instruction.operands[1], type);
  Value* b = Read(instruction.operands[2], type);
  if (instruction.Has(Modifier::kCc)) {
    // The carry register holds a borrow after a subtraction.
    Value* carry = add ? b_.CreateICmpULT(b_.CreateAdd(a, b), a) : b_.CreateICmpULT(a, b);
    Write(instruction, instruction.operands[0], add ? b_.CreateAdd(a, b) : b_.CreateSub(a, b),
          type);
    return WriteRegister(instruction, function_.carry, carry);
  }
  Value* result = nullptr;
  if (instruction.Has(Modifier::kSat)) {
    const auto id = ptx::IsSigned(type)
                        ? (add ? llvm::Intrinsic::sadd_sat : llvm::Intrinsic::ssub_sat)
                        : (add ? llvm::Intrinsic::uadd_sat : llvm::Intrinsic::usub_sat);
    result = b_.CreateBinaryIntrinsic(id, a, b);
  } else {
    result = add ? b_.CreateAdd(a, b) : b_.CreateSub(a, b);
  }
  Write(instruction, instruction.operands[0], result, type);
}

// addc, subc, madc: a step of arithmetic wider than a register.
void FunctionEmitter::EmitCarry(const Instruction& instruction) {
  const bool multiply = instruction.opcode == Opcode::kMadc;
  if (!Expect(instruction, multiply ? 4 : 3)) return;
  const Type type = instruction.type();
  Value* a = Read(instruction.operands[1], type);
  Value* b = Read(instruction.operands[2], type);
  if (multiply) {
    a = Product(instruction, a, b);
    b = Read(instruction.operands[3], type);
  }
  Value* carry = Resize(ReadRegister(function_.carry, scalar_), Bits(a), false);
  Value* result = nullptr;
  Value* carry_out = nullptr;
  if (instruction.opcode == Opcode::kSubc) {
    Value* part = b_.CreateSub(a, b);
    result = b_.CreateSub(part, carry);
    carry_out = b_.CreateOr(b_.CreateICmpULT(a, b), b_.CreateICmpULT(part, carry));
  } else {
    Value* part = b_.CreateAdd(a, b);
    result = b_.CreateAdd(part, carry);
    carry_out = b_.CreateOr(b_.CreateICmpULT(part, a), b_.CreateICmpULT(result, part));
  }
  Write(instruction, instruction.operands[0], result, type);
  if (instruction.Has(Modifier::kCc)) WriteRegister(instruction, function_.carry, carry_out);
}

// .lo, .hi or .wide of a * b.
llvm::Value* FunctionEmitter::Product(const Instruction& instruction, Value* a, Value* b) {
  if (!instruction.Has(Modifier::kHi) && !instruction.Has(Modifier::kWide)) {
    return b_.CreateMul(a, b);
  }
  const bool is_signed = ptx::IsSigned(instruction.type());
  const unsigned bits = Bits(a);
  Value* product = b_.CreateMul(Resize(a, 2 * bits, is_signed), Resize(b, 2 * bits, is_signed));
  if (instruction.Has(Modifier::kWide)) return product;
  return Resize(b_.CreateLShr(product, Like(product, bits)), bits, false);
}

void FunctionEmitter::EmitMul(const Instruction& instruction) {
  if (!Expect(instruction, 3)) return;
  const Type type = instruction.type();
  Value* a = Read(instruction.operands[1], type);
  Value* b = Read(instruction.operands[2], type);
  Write(instruction, instruction.operands[0], Product(instruction, a, b), type);
}

void FunctionEmitter::EmitMad(const Instruction& instruction) {
  if (!Expect(instruction, 4)) return;
  const Type type = instruction.type();
  Value* product = Product(instruction, Read(instruction.operands[1], type),
                           Read(instruction.operands[2], type));
  Value* c = Read(instruction.operands[3], type);
  if (instruction.Has(Modifier::kWide)) {
    const Type wide = ptx::BitWidth(type) == 16 ? Type::kB32 : Type::kB64;
    c = Read(instruction.operands[3], wide);
  }
  Value* sum = instruction.Has(Modifier::kSat)
                   ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, product, c)
                   : b_.CreateAdd(product, c);
  Write(instruction, instruction.operands[0], sum, type);
  if (instruction.Has(Modifier::kCc)) {
    WriteRegister(instruction, function_.carry, b_.CreateICmpULT(sum, product));
  }
}

void FunctionEmitter::EmitMul24(const Instruction& instruction) {
  const bool add = instruction.opcode == Opcode::kMad24;
  if (!Expect(instruction, add ? 4 : 3)) return;
  const Type type = instruction.type();
  const bool is_signed = ptx::IsSigned(type);
  const auto narrow = [&](const Operand& operand) {
    Value* value = b_.CreateShl(Read(operand, type), 8);
    value = is_signed ? b_.CreateAShr(value, 8) : b_.CreateLShr(value, 8);
    return Resize(value, 64, is_signed);
  };
  Value* product = b_.CreateMul(narrow(instruction.operands[1]), narrow(instruction.operands[2]));
  if (instruction.Has(Modifier::kHi)) product = b_.CreateLShr(product, Like(product, 16));
  Value* result = Resize(product, 32, false);
  if (add) {
    Value* c = Read(instruction.operands[3], type);
    result = instruction.Has(Modifier::kSat)
                 ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, result, c)
                 : b_.CreateAdd(result, c);
  }
  Write(instruction, instruction.operands[0], result, type);
}

void FunctionEmitter::EmitDivRem(const Instruction& instruction) {
  if (!Expect(instruction, 3)) return;
  const Type type = instruction.type();
  const bool is_signed = ptx::IsSigned(type);
  Value* a = Read(instruction.operands[1], type);
  Value* b = Read(instruction.operands[2], type);
  const bool remainder = instruction.opcode == Opcode::kRem;
  const bool narrow = IsVector(a) && Bits(a) <= 32;
  Value* result =
      narrow ? DivideNarrow(a, b, is_signed, remainder) : Divide(a, b, is_signed, remainder);
  Write(instruction, instruction.operands[0], result, type);
}

// A double holds 32-bit quotients exactly, and divides eight lanes at once.
llvm::Value* FunctionEmitter::DivideNarrow(Value* a, Value* b, bool is_signed, bool remainder) {
  const unsigned bits = Bits(a);
  llvm::Type* real = Lanes(b_.getDoubleTy());
  Value* zero = b_.CreateICmpEQ(b, Like(b, 0));
  Value* divisor = b_.CreateSelect(zero, Like(b, 1), b);
  Value* x = is_signed ? b_.CreateSIToFP(a, real) : b_.CreateUIToFP(a, real);
  Value* y = is_signed ? b_.CreateSIToFP(divisor, real) : b_.CreateUIToFP(divisor, real);
  Value* ratio = b_.CreateFDiv(x, y);
  llvm::Type* wide = Lanes(b_.getInt64Ty());
  Value* quotient = is_signed ? b_.CreateFPToSI(ratio, wide) : b_.CreateFPToUI(ratio, wide);
  quotient = Resize(quotient, bits, false);
  quotient = b_.CreateSelect(zero, Like(b, ~std::uint64_t{0}), quotient);
  return remainder ? b_.CreateSub(a, b_.CreateSelect(zero, Like(b, 0), b_.CreateMul(quotient, b)))
                   : quotient;
}

// The processor traps on a division by zero and on the one that overflows; a GPU does not.
llvm::Value* FunctionEmitter::Divide(Value* a, Value* b, bool is_signed, bool remainder) {
  Value* zero = b_.CreateICmpEQ(b, Like(b, 0));
  Value* divisor = b_.CreateSelect(zero, Like(b, 1), b);
  Value* overflow = nullptr;
  if (is_signed) {
    // x / -1 is -x, also where that overflows.
    overflow = b_.CreateICmpEQ(b, Like(b, ~std::uint64_t{0}));
    divisor = b_.CreateSelect(overflow, Like(b, 1), divisor);
  }
  Value* quotient = is_signed ? b_.CreateSDiv(a, divisor) : b_.CreateUDiv(a, divisor);
  if (is_signed) quotient = b_.CreateSelect(overflow, b_.CreateNeg(a), quotient);
  quotient = b_.CreateSelect(zero, Like(b, ~std::uint64_t{0}), quotient);
  if (!remainder) return quotient;
  return b_.CreateSub(a, b_.CreateMul(quotient, b));
}

void FunctionEmitter::EmitMinMax(const Instruction& instruction) {
  if (!Expect(instruction, 3)) return;
  const Type type = instruction.type();
  if (ptx::IsIntegerPair(type)) return EmitIntegerPair(instruction);
  const bool relu = instruction.Has(Modifier::kRelu);
  if (ptx::BitWidth(type) < 16 || (relu && type != Type::kS32)) return Unsupported(instruction);
  Write(instruction, instruction.operands[0],
        IntegerExtreme(instruction, Read(instruction.operands[1], type),
                       Read(instruction.operands[2], type)),
        type);
}

// With .relu no less than 0.
llvm::Value* FunctionEmitter::IntegerExtreme(const Instruction& instruction, Value* a, Value* b) {
  const bool minimum = instruction.opcode == Opcode::kMin;
  const auto id = ptx::IsSigned(instruction.type())
                      ? (minimum ? llvm::Intrinsic::smin : llvm::Intrinsic::smax)
                      : (minimum ? llvm::Intrinsic::umin : llvm::Intrinsic::umax);
  Value* result = b_.CreateBinaryIntrinsic(id, a, b);
  if (!instruction.Has(Modifier::kRelu)) return result;
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, result, Like(result, 0));
}

// add, min and max of two numbers of 16 bits in one register.
void FunctionEmitter::EmitIntegerPair(const Instruction& instruction) {
  const Type type = instruction.type();
  const bool add = instruction.opcode == Opcode::kAdd;
  const bool extreme = instruction.opcode == Opcode::kMin || instruction.opcode == Opcode::kMax;
  const bool sign_fits = !instruction.Has(Modifier::kRelu) || type == Type::kS16x2;
  if ((!add && !extreme) || !sign_fits || instruction.Has(Modifier::kSat)) {
    return Unsupported(instruction);
  }
  const auto halves = [&](const Operand& operand) {
    Value* words = Read(operand, Type::kB32);
    const unsigned count = IsVector(words) ? 2 * kWarpLanes : 2;
    return b_.CreateBitCast(words, llvm::FixedVectorType::get(b_.getInt16Ty(), count));
  };
  Value* a = halves(instruction.operands[1]);
  Value* b = halves(instruction.operands[2]);
  Value* result = add ? b_.CreateAdd(a, b) : IntegerExtreme(instruction, a, b);
  result = b_.CreateBitCast(result, Shaped(b_.getInt32Ty()));
  Write(instruction, instruction.operands[0], result, Type::kB32);
}

void FunctionEmitter::EmitAbsNeg(const Instruction& instruction) {
  if (!Expect(instruction, 2)) return;
  const Type type = instruction.type();
  Value* a = Read(instruction.operands[1], type);
  Value* negative = b_.CreateNeg(a);
  Value* result = negative;
  if (instruction.opcode == Opcode::kAbs) {
    result = b_.CreateSelect(b_.CreateICmpSLT(a, Like(a, 0)), negative, a);
  }
  Write(instruction, instruction.operands[0], result, type);
}

// |a - b| + c
void FunctionEmitter::EmitSad(const Instruction& instruction) {
  if (!Expect(instruction, 4)) return;
  const Type type = instruction.type();
  Value* a = Read(instruction.operands[1], type);
  Value* b = Read(instruction.operands[2], type);
  Value* less = ptx::IsSigned(type) ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
  Value* distance = b_.CreateSelect(less, b_.CreateSub(b, a), b_.CreateSub(a, b));
  Write(instruction, instruction.operands[0],
        b_.CreateAdd(distance, Read(instruction.operands[3], type)), type);
}

// dp4a: four products of bytes; dp2a: two of a 16-bit half and a byte.
void FunctionEmitter::EmitDotProduct(const Instruction& instruction) {
  if (!Expect(instruction, 4) || instruction.types.size() < 2) return Unsupported(instruction);
  Value* a = Read(instruction.operands[1], Type::kB32);
  Value* b = Read(instruction.operands[2], Type::kB32);
  Value* sum = Read(instruction.operands[3], Type::kB32);
  const bool four = instruction.opcode == Opcode::kDp4a;
  const unsigned a_bits = four ? 8 : 16;
  const unsigned b_offset = !four && instruction.Has(Modifier::kHi) ? 16 : 0;
  const auto field = [&](Value* value, unsigned offset, unsigned bits, bool is_signed) {
    value = b_.CreateLShr(value, Like(value, offset));
    return Resize(Resize(value, bits, false), 32, is_signed);
  };
  for (unsigned i = 0; i < (four ? 4U : 2U); ++i) {
    Value* x = field(a, i * a_bits, a_bits, ptx::IsSigned(instruction.types[0]));
    Value* y = field(b, b_offset + i * 8, 8, ptx::IsSigned(instruction.types[1]));
    sum = b_.CreateAdd(sum, b_.CreateMul(x, y));
  }
  Write(instruction, instruction.operands[0], sum, Type::kB32);
}

}  // namespace torpor::emulator
