// Logic, shifts and bit fields.
#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

using ptx::Opcode;

void FunctionEmitter::EmitLogic(const Instruction& instruction) {
  const bool unary = instruction.opcode == Opcode::kNot || instruction.opcode == Opcode::kCnot;
  if (!Expect(instruction, unary ? 2 : 3)) return;
  const Type type = instruction.type();
  Value* a = Read(instruction.operands[1], type);
  Value* b = unary ? nullptr : Read(instruction.operands[2], type);
  Value* result = nullptr;
  switch (instruction.opcode) {
    case Opcode::kAnd:
      result = b_.CreateAnd(a, b);
      break;
    case Opcode::kOr:
      result = b_.CreateOr(a, b);
      break;
    case Opcode::kXor:
      result = b_.CreateXor(a, b);
      break;
    case Opcode::kNot:
      result = b_.CreateNot(a);
      break;
    default:
      result = b_.CreateZExt(b_.CreateICmpEQ(a, Like(a, 0)), a->getType());
  }
  Write(instruction, instruction.operands[0], result, type);
}

// PTX clamps shift amounts to the width, LLVM leaves them undefined.
llvm::Value* FunctionEmitter::ClampedShift(Value* value, Value* amount,
                                           llvm::Instruction::BinaryOps op) {
  const unsigned bits = Bits(value);
  amount = Resize(amount, bits, false);
  Value* in_range = b_.CreateICmpULT(amount, Like(amount, bits));
  if (op == llvm::Instruction::AShr) {
    amount = b_.CreateSelect(in_range, amount, Like(amount, bits - 1));
    return b_.CreateAShr(value, amount);
  }
  Value* safe = b_.CreateSelect(in_range, amount, Like(amount, 0));
  return b_.CreateSelect(in_range, b_.CreateBinOp(op, value, safe), Like(value, 0));
}

void FunctionEmitter::EmitShift(const Instruction& instruction) {
  if (!Expect(instruction, 3)) return;
  const Type type = instruction.type();
  Value* value = Read(instruction.operands[1], type);
  Value* amount = Read(instruction.operands[2], Type::kU32);
  if (Bits(value) < 32) {
    // A 16-bit register shifted by more than its width, without truncating the amount first.
    amount = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, amount, Like(amount, 255));
  }
  auto op = llvm::Instruction::Shl;
  if (instruction.opcode == Opcode::kShr) {
    op = ptx::IsSigned(type) ? llvm::Instruction::AShr : llvm::Instruction::LShr;
  }
  Write(instruction, instruction.operands[0], ClampedShift(value, amount, op), type);
}

void FunctionEmitter::EmitFunnelShift(const Instruction& instruction) {
  if (!Expect(instruction, 4)) return;
  Value* low = Resize(Read(instruction.operands[1], Type::kB32), 64, false);
  Value* high = Resize(Read(instruction.operands[2], Type::kB32), 64, false);
  Value* amount = Read(instruction.operands[3], Type::kU32);
  amount = instruction.Has(Modifier::kWrap)
               ? b_.CreateAnd(amount, Like(amount, 31))
               : b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, amount, Like(amount, 32));
  amount = Resize(amount, 64, false);
  Value* both = b_.CreateOr(low, b_.CreateShl(high, Like(high, 32)));
  Value* result = nullptr;
  if (instruction.Has(Modifier::kL)) {
    result = b_.CreateLShr(b_.CreateShl(both, amount), Like(both, 32));
  } else {
    result = b_.CreateLShr(both, amount);
  }
  Write(instruction, instruction.operands[0], Resize(result, 32, false), Type::kB32);
}

void FunctionEmitter::EmitLop3(const Instruction& instruction) {
  if (!Expect(instruction, 5) || instruction.operands[4].kind != Operand::Kind::kInteger) {
    return Unsupported(instruction);
  }
  Value* inputs[3] = {};
  for (unsigned i = 0; i < 3; ++i) inputs[i] = Read(instruction.operands[i + 1], Type::kB32);
  Value* result = Like(inputs[0], 0);
  for (unsigned row = 0; row < 8; ++row) {
    if (((instruction.operands[4].bits >> row) & 1) == 0) continue;
    Value* term = Like(inputs[0], ~std::uint64_t{0});
    for (unsigned i = 0; i < 3; ++i) {
      const bool set = ((row >> (2 - i)) & 1) != 0;
      term = b_.CreateAnd(term, set ? inputs[i] : b_.CreateNot(inputs[i]));
    }
    result = b_.CreateOr(result, term);
  }
  Write(instruction, instruction.operands[0], result, Type::kB32);
}

void FunctionEmitter::EmitCount(const Instruction& instruction) {
  if (!Expect(instruction, 2)) return;
  const Type type = instruction.type();
  Value* a = Read(instruction.operands[1], type);
  if (instruction.opcode == Opcode::kBrev) {
    Value* reversed = b_.CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, a);
    return Write(instruction, instruction.operands[0], reversed, type);
  }
  Value* count = instruction.opcode == Opcode::kPopc
                     ? b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, a)
                     : b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, a, b_.getFalse());
  Write(instruction, instruction.operands[0], Resize(count, 32, false), Type::kU32);
}

void FunctionEmitter::EmitBitField(const Instruction& instruction) {
  const bool insert = instruction.opcode == Opcode::kBfi;
  if (!Expect(instruction, insert ? 5 : 4)) return;
  const Type type = instruction.type();
  const unsigned bits = ptx::BitWidth(type);
  const auto byte = [&](const Operand& operand) {
    Value* value = Read(operand, Type::kU32);
    value = b_.CreateAnd(value, Like(value, 255));
    return Resize(value, bits, false);
  };
  const std::size_t first = insert ? 3 : 2;
  Value* position = byte(instruction.operands[first]);
  Value* length = byte(instruction.operands[first + 1]);
  Value* a = Read(instruction.operands[1], type);
  Value* ones = Like(a, ~std::uint64_t{0});
  Value* mask = b_.CreateNot(ClampedShift(ones, length, llvm::Instruction::Shl));
  if (insert) {
    Value* b = Read(instruction.operands[2], type);
    Value* field = ClampedShift(mask, position, llvm::Instruction::Shl);
    Value* moved = ClampedShift(a, position, llvm::Instruction::Shl);
    Value* result = b_.CreateOr(b_.CreateAnd(moved, field), b_.CreateAnd(b, b_.CreateNot(field)));
    return Write(instruction, instruction.operands[0], result, type);
  }
  Value* field = b_.CreateAnd(ClampedShift(a, position, llvm::Instruction::LShr), mask);
  if (!ptx::IsSigned(type)) return Write(instruction, instruction.operands[0], field, type);
  // The sign is the field's last bit, or the value's where the field reaches beyond it.
  Value* last = b_.CreateAdd(position, b_.CreateSub(length, Like(length, 1)));
  last = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, last, Like(last, bits - 1));
  Value* negative =
      b_.CreateTrunc(b_.CreateLShr(a, last), IsVector(a) ? Lanes(b_.getInt1Ty()) : b_.getInt1Ty());
  Value* empty = b_.CreateICmpEQ(length, Like(length, 0));
  Value* extended = b_.CreateOr(field, b_.CreateNot(mask));
  // Bits that the shift brought in from beyond the top belong to the sign, too.
  Value* beyond = b_.CreateNot(ClampedShift(ones, position, llvm::Instruction::LShr));
  extended = b_.CreateOr(extended, beyond);
  Value* result = b_.CreateSelect(negative, extended, field);
  result = b_.CreateSelect(empty, Like(a, 0), result);
  Write(instruction, instruction.operands[0], result, type);
}

void FunctionEmitter::EmitFindBit(const Instruction& instruction) {
  if (!Expect(instruction, 2)) return;
  const Type type = instruction.type();
  const unsigned bits = ptx::BitWidth(type);
  Value* a = Read(instruction.operands[1], type);
  if (ptx::IsSigned(type)) a = b_.CreateXor(a, b_.CreateAShr(a, Like(a, bits - 1)));
  Value* zeros = b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, a, b_.getFalse());
  Value* result =
      instruction.Has(Modifier::kShiftamt) ? zeros : b_.CreateSub(Like(a, bits - 1), zeros);
  result = Resize(result, 32, false);
  Value* none = b_.CreateICmpEQ(a, Like(a, 0));
  result = b_.CreateSelect(none, Like(result, 0xffffffff), result);
  Write(instruction, instruction.operands[0], result, Type::kU32);
}

// bmsk: `b` ones from bit `a` up.
void FunctionEmitter::EmitMask(const Instruction& instruction) {
  if (!Expect(instruction, 3)) return;
  Value* position = Read(instruction.operands[1], Type::kU32);
  Value* length = Read(instruction.operands[2], Type::kU32);
  if (instruction.Has(Modifier::kWrap)) {
    position = b_.CreateAnd(position, Like(position, 31));
    length = b_.CreateAnd(length, Like(length, 31));
  }
  Value* ones = Like(position, ~std::uint64_t{0});
  Value* low = b_.CreateNot(ClampedShift(ones, length, llvm::Instruction::Shl));
  Write(instruction, instruction.operands[0], ClampedShift(low, position, llvm::Instruction::Shl),
        Type::kB32);
}

void FunctionEmitter::EmitSignExtend(const Instruction& instruction) {
  if (!Expect(instruction, 3)) return;
  const Type type = instruction.type();
  Value* a = Read(instruction.operands[1], type);
  Value* length = Read(instruction.operands[2], Type::kU32);
  length = instruction.Has(Modifier::kWrap)
               ? b_.CreateAnd(length, Like(length, 31))
               : b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, length, Like(length, 32));
  Value* shift = b_.CreateSub(Like(length, 32), length);
  Value* up = ClampedShift(a, shift, llvm::Instruction::Shl);
  const auto down = ptx::IsSigned(type) ? llvm::Instruction::AShr : llvm::Instruction::LShr;
  Value* result = ClampedShift(up, shift, down);
  result = b_.CreateSelect(b_.CreateICmpEQ(length, Like(length, 0)), Like(a, 0), result);
  Write(instruction, instruction.operands[0], result, type);
}

// The 4-bit selector of a result byte of prmt: which of eight bytes, and whether its sign.
llvm::Value* FunctionEmitter::PermuteSelector(const Instruction& instruction, Value* control,
                                              unsigned byte) {
  const auto modulo4 = [&](Value* value) { return b_.CreateAnd(value, Like(value, 3)); };
  Value* index = modulo4(control);
  Value* constant = Like(control, byte);
  if (instruction.Has(Modifier::kF4e)) return b_.CreateAdd(index, constant);
  if (instruction.Has(Modifier::kB4e)) {
    Value* back = b_.CreateSub(index, constant);
    return b_.CreateAnd(back, Like(back, 7));
  }
  if (instruction.Has(Modifier::kRc8)) return index;
  if (instruction.Has(Modifier::kEcl)) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, index, constant);
  }
  if (instruction.Has(Modifier::kEcr)) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, index, constant);
  }
  if (instruction.Has(Modifier::kRc16)) {
    Value* half = b_.CreateShl(b_.CreateAnd(control, Like(control, 1)), 1);
    return b_.CreateAdd(half, Like(control, byte & 1));
  }
  return b_.CreateAnd(b_.CreateLShr(control, Like(control, std::uint64_t{4} * byte)),
                      Like(control, 15));
}

void FunctionEmitter::EmitPermute(const Instruction& instruction) {
  if (!Expect(instruction, 4)) return;
  Value* low = Resize(Read(instruction.operands[1], Type::kB32), 64, false);
  Value* high = Resize(Read(instruction.operands[2], Type::kB32), 64, false);
  Value* control = Read(instruction.operands[3], Type::kB32);
  Value* both = b_.CreateOr(low, b_.CreateShl(high, Like(high, 32)));
  Value* result = Like(control, 0);
  for (unsigned i = 0; i < 4; ++i) {
    Value* selector = PermuteSelector(instruction, control, i);
    Value* index = b_.CreateAnd(selector, Like(selector, 7));
    Value* shift = b_.CreateShl(Resize(index, 64, false), 3);
    Value* byte = Resize(b_.CreateLShr(both, shift), 8, false);
    Value* sign = b_.CreateAShr(byte, Like(byte, 7));
    Value* wants_sign =
        b_.CreateICmpNE(b_.CreateAnd(selector, Like(selector, 8)), Like(selector, 0));
    byte = Resize(b_.CreateSelect(wants_sign, sign, byte), 32, false);
    result = b_.CreateOr(result, b_.CreateShl(byte, Like(byte, std::uint64_t{8} * i)));
  }
  Write(instruction, instruction.operands[0], result, Type::kB32);
}

// fns d, mask, base, offset: the offset-th set bit, counted from base on upwards, or downwards if
// the offset is negative; base itself if it is 0. All ones if there is none.
void FunctionEmitter::EmitFindNth(const Instruction& instruction) {
  if (!Expect(instruction, 4)) return;
  Value* mask = Read(instruction.operands[1], Type::kB32);
  Value* base = Read(instruction.operands[2], Type::kU32);
  Value* offset = Read(instruction.operands[3], Type::kS32);
  Value* none = Like(mask, 0xffffffff);
  Value* zero = Like(mask, 0);
  base = b_.CreateAnd(base, Like(base, 31));
  Value* down = b_.CreateICmpSLT(offset, zero);
  // Downwards is upwards in the reversed mask.
  mask = b_.CreateSelect(down, b_.CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, mask), mask);
  Value* start = b_.CreateSelect(down, b_.CreateSub(Like(base, 31), base), base);
  Value* left = b_.CreateAnd(mask, b_.CreateShl(none, start));
  Value* is_base = b_.CreateICmpEQ(offset, zero);
  Value* only = b_.CreateAnd(left, b_.CreateShl(Like(mask, 1), start));
  left = b_.CreateSelect(is_base, only, left);
  Value* skipped = b_.CreateSub(b_.CreateSelect(down, b_.CreateNeg(offset), offset), Like(mask, 1));
  for (unsigned i = 0; i + 1 < 32; ++i) {
    Value* without = b_.CreateAnd(left, b_.CreateSub(left, Like(left, 1)));
    left = b_.CreateSelect(b_.CreateICmpSGT(skipped, Like(skipped, i)), without, left);
  }
  Value* found = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, left, b_.getFalse());
  Value* position = b_.CreateSelect(down, b_.CreateSub(Like(found, 31), found), found);
  // More than are left, or more than there can be.
  Value* missing =
      b_.CreateOr(b_.CreateICmpEQ(left, zero), b_.CreateICmpSGT(skipped, Like(skipped, 31)));
  Write(instruction, instruction.operands[0], b_.CreateSelect(missing, none, position), Type::kB32);
}

}  // namespace torpor::emulator
