// Logic, shifts and bit fields.
#include "emulator/exec/codegen/opcodes.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

namespace {

// PTX clamps shift amounts to the width; LLVM leaves larger amounts undefined.
Value* ClampedShift(LaneBuilder& code, Value* value, Value* amount,
                    llvm::Instruction::BinaryOps op) {
  const unsigned bits = Bits(value);
  amount = code.Resize(amount, bits, false);
  Value* in_range = code->CreateICmpULT(amount, Like(amount, bits));
  if (op == llvm::Instruction::AShr) {
    amount = code->CreateSelect(in_range, amount, Like(amount, bits - 1));
    return code->CreateAShr(value, amount);
  }
  Value* safe = code->CreateSelect(in_range, amount, Like(amount, 0));
  return code->CreateSelect(in_range, code->CreateBinOp(op, value, safe), Like(value, 0));
}

// The 4-bit selector of a result byte of prmt: number of a source byte (3 bits), and whether to
// replicate the byte's sign.
Value* PermuteSelector(LaneBuilder& code, const Instruction& instruction, Value* control,
                       unsigned byte) {
  const auto modulo4 = [&](Value* value) { return code->CreateAnd(value, Like(value, 3)); };
  Value* index = modulo4(control);
  Value* constant = Like(control, byte);
  if (instruction.Has(Modifier::kF4e)) return code->CreateAdd(index, constant);
  if (instruction.Has(Modifier::kB4e)) {
    Value* back = code->CreateSub(index, constant);
    return code->CreateAnd(back, Like(back, 7));
  }
  if (instruction.Has(Modifier::kRc8)) return index;
  if (instruction.Has(Modifier::kEcl)) {
    return code->CreateBinaryIntrinsic(llvm::Intrinsic::umax, index, constant);
  }
  if (instruction.Has(Modifier::kEcr)) {
    return code->CreateBinaryIntrinsic(llvm::Intrinsic::umin, index, constant);
  }
  if (instruction.Has(Modifier::kRc16)) {
    Value* half = code->CreateShl(code->CreateAnd(control, Like(control, 1)), 1);
    return code->CreateAdd(half, Like(control, byte & 1));
  }
  return code->CreateAnd(code->CreateLShr(control, Like(control, std::uint64_t{4} * byte)),
                         Like(control, 15));
}

}  // namespace

void EmitLogic(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  const bool unary = instruction.opcode == Opcode::kNot || instruction.opcode == Opcode::kCnot;
  if (!to.Expect(instruction, unary ? 2 : 3)) return;
  const Type type = instruction.type();
  Value* a = to.Read(instruction.operands[1], type);
  Value* b = unary ? nullptr : to.Read(instruction.operands[2], type);
  Value* result = nullptr;
  switch (instruction.opcode) {
    case Opcode::kAnd:
      result = code->CreateAnd(a, b);
      break;
    case Opcode::kOr:
      result = code->CreateOr(a, b);
      break;
    case Opcode::kXor:
      result = code->CreateXor(a, b);
      break;
    case Opcode::kNot:
      result = code->CreateNot(a);
      break;
    default:
      result = code->CreateZExt(code->CreateICmpEQ(a, Like(a, 0)), a->getType());
  }
  to.Write(instruction, instruction.operands[0], result, type);
}

// Amounts are 32 bits wide for all types.
void EmitShift(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 3)) return;
  const Type type = instruction.type();
  Value* value = to.Read(instruction.operands[1], type);
  Value* amount = to.Read(instruction.operands[2], Type::kU32);
  if (Bits(value) < 32) {
    // A 16-bit register shifted by more than its width, without truncating the amount first.
    amount = code->CreateBinaryIntrinsic(llvm::Intrinsic::umin, amount, Like(amount, 255));
  }
  auto op = llvm::Instruction::Shl;
  if (instruction.opcode == Opcode::kShr) {
    op = ptx::IsSigned(type) ? llvm::Instruction::AShr : llvm::Instruction::LShr;
  }
  to.Write(instruction, instruction.operands[0], ClampedShift(code, value, amount, op), type);
}

// Shifts the 64 bits {high, low} and takes the upper half (.l) or the lower half (.r).
void EmitFunnelShift(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 4)) return;
  Value* low = code.Resize(to.Read(instruction.operands[1], Type::kB32), 64, false);
  Value* high = code.Resize(to.Read(instruction.operands[2], Type::kB32), 64, false);
  Value* amount = to.Read(instruction.operands[3], Type::kU32);
  amount = instruction.Has(Modifier::kWrap)
               ? code->CreateAnd(amount, Like(amount, 31))
               : code->CreateBinaryIntrinsic(llvm::Intrinsic::umin, amount, Like(amount, 32));
  amount = code.Resize(amount, 64, false);
  Value* both = code->CreateOr(low, code->CreateShl(high, Like(high, 32)));
  Value* result = nullptr;
  if (instruction.Has(Modifier::kL)) {
    result = code->CreateLShr(code->CreateShl(both, amount), Like(both, 32));
  } else {
    result = code->CreateLShr(both, amount);
  }
  to.Write(instruction, instruction.operands[0], code.Resize(result, 32, false), Type::kB32);
}

// A sum of products: one term for each true row of the truth table. The optimiser finds vpternlog.
void EmitLop3(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 5) || instruction.operands[4].kind != Operand::Kind::kInteger) {
    return to.Unsupported(instruction);
  }
  Value* inputs[3] = {};
  for (unsigned i = 0; i < 3; ++i) inputs[i] = to.Read(instruction.operands[i + 1], Type::kB32);
  Value* result = Like(inputs[0], 0);
  for (unsigned row = 0; row < 8; ++row) {
    if (((instruction.operands[4].bits >> row) & 1) == 0) continue;
    Value* term = Like(inputs[0], ~std::uint64_t{0});
    for (unsigned i = 0; i < 3; ++i) {
      const bool set = ((row >> (2 - i)) & 1) != 0;
      term = code->CreateAnd(term, set ? inputs[i] : code->CreateNot(inputs[i]));
    }
    result = code->CreateOr(result, term);
  }
  to.Write(instruction, instruction.operands[0], result, Type::kB32);
}

void EmitCount(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 2)) return;
  const Type type = instruction.type();
  Value* a = to.Read(instruction.operands[1], type);
  if (instruction.opcode == Opcode::kBrev) {
    Value* reversed = code->CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, a);
    return to.Write(instruction, instruction.operands[0], reversed, type);
  }
  Value* count = instruction.opcode == Opcode::kPopc
                     ? code->CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, a)
                     : code->CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, a, code->getFalse());
  to.Write(instruction, instruction.operands[0], code.Resize(count, 32, false), Type::kU32);
}

// Position and length are the low bytes of the operands. Fields may reach beyond the top of the
// value.
void EmitBitField(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  const bool insert = instruction.opcode == Opcode::kBfi;
  if (!to.Expect(instruction, insert ? 5 : 4)) return;
  const Type type = instruction.type();
  const unsigned bits = ptx::BitWidth(type);
  const auto byte = [&](const Operand& operand) {
    Value* value = to.Read(operand, Type::kU32);
    value = code->CreateAnd(value, Like(value, 255));
    return code.Resize(value, bits, false);
  };
  const std::size_t first = insert ? 3 : 2;
  Value* position = byte(instruction.operands[first]);
  Value* length = byte(instruction.operands[first + 1]);
  Value* a = to.Read(instruction.operands[1], type);
  Value* ones = Like(a, ~std::uint64_t{0});
  Value* mask = code->CreateNot(ClampedShift(code, ones, length, llvm::Instruction::Shl));
  if (insert) {
    Value* b = to.Read(instruction.operands[2], type);
    Value* field = ClampedShift(code, mask, position, llvm::Instruction::Shl);
    Value* moved = ClampedShift(code, a, position, llvm::Instruction::Shl);
    Value* result =
        code->CreateOr(code->CreateAnd(moved, field), code->CreateAnd(b, code->CreateNot(field)));
    return to.Write(instruction, instruction.operands[0], result, type);
  }
  Value* field = code->CreateAnd(ClampedShift(code, a, position, llvm::Instruction::LShr), mask);
  if (!ptx::IsSigned(type)) return to.Write(instruction, instruction.operands[0], field, type);
  // The sign is the field's last bit, or the value's where the field reaches beyond it.
  Value* last = code->CreateAdd(position, code->CreateSub(length, Like(length, 1)));
  last = code->CreateBinaryIntrinsic(llvm::Intrinsic::umin, last, Like(last, bits - 1));
  Value* negative = code->CreateTrunc(code->CreateLShr(a, last),
                                      IsVector(a) ? Lanes(code->getInt1Ty()) : code->getInt1Ty());
  Value* empty = code->CreateICmpEQ(length, Like(length, 0));
  Value* extended = code->CreateOr(field, code->CreateNot(mask));
  // Bits that the shift brought in from beyond the top belong to the sign, too.
  Value* beyond = code->CreateNot(ClampedShift(code, ones, position, llvm::Instruction::LShr));
  extended = code->CreateOr(extended, beyond);
  Value* result = code->CreateSelect(negative, extended, field);
  result = code->CreateSelect(empty, Like(a, 0), result);
  to.Write(instruction, instruction.operands[0], result, type);
}

// Position of the highest 1-bit, or for signed types of the highest bit unlike the sign bit;
// 0xffffffff if there is no such bit. .shiftamt counts from the top.
void EmitFindBit(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 2)) return;
  const Type type = instruction.type();
  const unsigned bits = ptx::BitWidth(type);
  Value* a = to.Read(instruction.operands[1], type);
  if (ptx::IsSigned(type)) a = code->CreateXor(a, code->CreateAShr(a, Like(a, bits - 1)));
  Value* zeros = code->CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, a, code->getFalse());
  Value* result =
      instruction.Has(Modifier::kShiftamt) ? zeros : code->CreateSub(Like(a, bits - 1), zeros);
  result = code.Resize(result, 32, false);
  Value* none = code->CreateICmpEQ(a, Like(a, 0));
  result = code->CreateSelect(none, Like(result, 0xffffffff), result);
  to.Write(instruction, instruction.operands[0], result, Type::kU32);
}

// bmsk d, a, b: `b` 1-bits from bit `a` up.
void EmitMask(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 3)) return;
  Value* position = to.Read(instruction.operands[1], Type::kU32);
  Value* length = to.Read(instruction.operands[2], Type::kU32);
  if (instruction.Has(Modifier::kWrap)) {
    position = code->CreateAnd(position, Like(position, 31));
    length = code->CreateAnd(length, Like(length, 31));
  }
  Value* ones = Like(position, ~std::uint64_t{0});
  Value* low = code->CreateNot(ClampedShift(code, ones, length, llvm::Instruction::Shl));
  to.Write(instruction, instruction.operands[0],
           ClampedShift(code, low, position, llvm::Instruction::Shl), Type::kB32);
}

// Shifts the field to the top and back. Length 0 gives 0.
void EmitSignExtend(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 3)) return;
  const Type type = instruction.type();
  Value* a = to.Read(instruction.operands[1], type);
  Value* length = to.Read(instruction.operands[2], Type::kU32);
  length = instruction.Has(Modifier::kWrap)
               ? code->CreateAnd(length, Like(length, 31))
               : code->CreateBinaryIntrinsic(llvm::Intrinsic::umin, length, Like(length, 32));
  Value* shift = code->CreateSub(Like(length, 32), length);
  Value* up = ClampedShift(code, a, shift, llvm::Instruction::Shl);
  const auto down = ptx::IsSigned(type) ? llvm::Instruction::AShr : llvm::Instruction::LShr;
  Value* result = ClampedShift(code, up, shift, down);
  result = code->CreateSelect(code->CreateICmpEQ(length, Like(length, 0)), Like(a, 0), result);
  to.Write(instruction, instruction.operands[0], result, type);
}

// Builds each result byte from the 8 bytes {high, low} by a selector.
void EmitPermute(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 4)) return;
  Value* low = code.Resize(to.Read(instruction.operands[1], Type::kB32), 64, false);
  Value* high = code.Resize(to.Read(instruction.operands[2], Type::kB32), 64, false);
  Value* control = to.Read(instruction.operands[3], Type::kB32);
  Value* both = code->CreateOr(low, code->CreateShl(high, Like(high, 32)));
  Value* result = Like(control, 0);
  for (unsigned i = 0; i < 4; ++i) {
    Value* selector = PermuteSelector(code, instruction, control, i);
    Value* index = code->CreateAnd(selector, Like(selector, 7));
    Value* shift = code->CreateShl(code.Resize(index, 64, false), 3);
    Value* byte = code.Resize(code->CreateLShr(both, shift), 8, false);
    Value* sign = code->CreateAShr(byte, Like(byte, 7));
    Value* wants_sign =
        code->CreateICmpNE(code->CreateAnd(selector, Like(selector, 8)), Like(selector, 0));
    byte = code.Resize(code->CreateSelect(wants_sign, sign, byte), 32, false);
    result = code->CreateOr(result, code->CreateShl(byte, Like(byte, std::uint64_t{8} * i)));
  }
  to.Write(instruction, instruction.operands[0], result, Type::kB32);
}

// fns d, mask, base, offset: position of the offset-th set bit, counted from `base` upwards, or
// downwards if `offset` is negative. Offset 0 asks for `base` itself. 0xffffffff if no bit matches.
void EmitFindNth(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 4)) return;
  Value* mask = to.Read(instruction.operands[1], Type::kB32);
  Value* base = to.Read(instruction.operands[2], Type::kU32);
  Value* offset = to.Read(instruction.operands[3], Type::kS32);
  Value* none = Like(mask, 0xffffffff);
  Value* zero = Like(mask, 0);
  base = code->CreateAnd(base, Like(base, 31));
  Value* down = code->CreateICmpSLT(offset, zero);
  // Downwards is upwards in the reversed mask.
  mask =
      code->CreateSelect(down, code->CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, mask), mask);
  Value* start = code->CreateSelect(down, code->CreateSub(Like(base, 31), base), base);
  Value* left = code->CreateAnd(mask, code->CreateShl(none, start));
  Value* is_base = code->CreateICmpEQ(offset, zero);
  Value* only = code->CreateAnd(left, code->CreateShl(Like(mask, 1), start));
  left = code->CreateSelect(is_base, only, left);
  Value* skipped =
      code->CreateSub(code->CreateSelect(down, code->CreateNeg(offset), offset), Like(mask, 1));
  for (unsigned i = 0; i + 1 < 32; ++i) {
    Value* without = code->CreateAnd(left, code->CreateSub(left, Like(left, 1)));
    left = code->CreateSelect(code->CreateICmpSGT(skipped, Like(skipped, i)), without, left);
  }
  Value* found = code->CreateBinaryIntrinsic(llvm::Intrinsic::cttz, left, code->getFalse());
  Value* position = code->CreateSelect(down, code->CreateSub(Like(found, 31), found), found);
  // More than are left, or more than there can be.
  Value* missing = code->CreateOr(code->CreateICmpEQ(left, zero),
                                  code->CreateICmpSGT(skipped, Like(skipped, 31)));
  to.Write(instruction, instruction.operands[0], code->CreateSelect(missing, none, position),
           Type::kB32);
}

}  // namespace torpor::emulator
