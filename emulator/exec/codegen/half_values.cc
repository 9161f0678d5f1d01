// f16 and bf16, alone or in pairs. Sums and products are computed as f32 and rounded once more,
// with the same result as direct computation: f32 has more than twice as many digits. The rule
// fails for fma and for conversions from more than 24 digits: both use f64, rounded to odd until
// the last step.
#include "emulator/exec/codegen/half_values.h"

#include "emulator/exec/codegen/float_values.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Operand;
using ptx::Type;

namespace {

bool IsBrain(Type type) { return type == Type::kBf16 || type == Type::kBf16x2; }

// The bits of a number rounded to odd, from `near`, rounded to nearest. Inexact numbers get the
// last bit set, and so compare with all shorter numbers as the exact number does.
Value* OddBits(LaneBuilder& code, Value* near, Value* inexact, Value* too_large) {
  Value* bits = code.ToInt(near);
  Value* cut = code->CreateSelect(too_large, code->CreateSub(bits, Like(bits, 1)), bits);
  bits = code->CreateSelect(inexact, code->CreateOr(cut, Like(cut, 1)), bits);
  return code->CreateBitCast(bits, near->getType());
}

Value* NarrowToOdd(LaneBuilder& code, Value* value) {
  llvm::Type* real = code->getFloatTy();
  Value* near = code->CreateFPTrunc(value, IsVector(value) ? Lanes(real) : real);
  Value* back = code->CreateFPExt(near, value->getType());
  Value* too_large = code->CreateFCmpOGT(code.Intrinsic(llvm::Intrinsic::fabs, {back}),
                                         code.Intrinsic(llvm::Intrinsic::fabs, {value}));
  return OddBits(code, near, code->CreateFCmpONE(back, value), too_large);
}

// Of two neighbours the other one, where the nearest lies on the wrong side.
Value* DirectHalf(LaneBuilder& code, Value* exact, Value* nearest, Type type, Rounding rounding) {
  Value* value = code->CreateFPExt(WidenHalf(code, nearest, type), exact->getType());
  Value* negative = code->CreateICmpSLT(nearest, Like(nearest, 0));
  Value* one = Like(nearest, 1);
  Value* to_zero = code->CreateSub(nearest, one);
  Value* from_zero = code->CreateAdd(nearest, one);
  Value* above = code->CreateFCmpOGT(value, exact);
  Value* below = code->CreateFCmpOLT(value, exact);
  if (rounding == Rounding::kZero) {
    Value* beyond = code->CreateSelect(negative, below, above);
    return code->CreateSelect(beyond, to_zero, nearest);
  }
  if (rounding == Rounding::kDown) {
    // Below +0 comes the first negative number.
    Value* is_zero = code->CreateICmpEQ(nearest, Like(nearest, 0));
    Value* down = code->CreateSelect(negative, from_zero, to_zero);
    down = code->CreateSelect(is_zero, Like(nearest, 0x8001), down);
    return code->CreateSelect(above, down, nearest);
  }
  Value* is_zero = code->CreateICmpEQ(nearest, Like(nearest, 0x8000));
  Value* up = code->CreateSelect(negative, to_zero, from_zero);
  up = code->CreateSelect(is_zero, one, up);
  return code->CreateSelect(below, up, nearest);
}

}  // namespace

bool IsHalf(Type type) { return type >= Type::kF16 && type <= Type::kBf16x2; }

bool IsHalfPair(Type type) { return type == Type::kF16x2 || type == Type::kBf16x2; }

Value* WidenHalf(LaneBuilder& code, Value* bits, Type type) {
  if (IsBrain(type)) {
    Value* wide = code.Resize(bits, 32, false);
    return code.ToFloat(code->CreateShl(wide, Like(wide, 16)));
  }
  llvm::Type* real = code->getFloatTy();
  return code->CreateFPExt(code.ToFloat(bits), IsVector(bits) ? Lanes(real) : real);
}

Value* FlushHalf(LaneBuilder& code, const Instruction& instruction, Value* bits, Type type) {
  if (!instruction.Has(Modifier::kFtz)) return bits;
  Value* exponent = code->CreateAnd(bits, Like(bits, IsBrain(type) ? 0x7f80 : 0x7c00));
  Value* zero = code->CreateAnd(bits, Like(bits, 0x8000));
  return code->CreateSelect(code->CreateICmpEQ(exponent, Like(bits, 0)), zero, bits);
}

Value* ReadHalf(OperandBuilder& to, const Instruction& instruction, const Operand& operand,
                Type type, unsigned part) {
  LaneBuilder& code = to.code();
  Value* bits = to.Read(operand, IsHalfPair(type) ? Type::kB32 : Type::kB16);
  bits = code.Resize(code->CreateLShr(bits, Like(bits, std::uint64_t{16} * part)), 16, false);
  return WidenHalf(code, FlushHalf(code, instruction, bits, type), type);
}

// The error of the sum, found exactly, tells on which side of the exact number the sum lies.
Value* SumToOdd(LaneBuilder& code, Value* a, Value* b) {
  Value* sum = code->CreateFAdd(a, b);
  // Knuth's TwoSum: sum + error is exact. NaN where the sum is not finite.
  Value* rest = code->CreateFSub(sum, a);
  Value* error =
      code->CreateFAdd(code->CreateFSub(a, code->CreateFSub(sum, rest)), code->CreateFSub(b, rest));
  Value* zero = llvm::ConstantFP::getZero(sum->getType());
  Value* too_large =
      code->CreateXor(code->CreateFCmpOLT(error, zero), code->CreateFCmpOLT(sum, zero));
  return OddBits(code, sum, code->CreateFCmpONE(error, zero), too_large);
}

// f64 has 53 digits: rounds longer integers to odd, at bit 11.
Value* IntegerToOdd(LaneBuilder& code, Value* value, bool is_signed) {
  if (Bits(value) == 64) {
    constexpr std::uint64_t kSmall = std::uint64_t{1} << 32;
    Value* is_exact = code->CreateICmpULT(
        code->CreateAdd(value, Like(value, is_signed ? kSmall : 0)), Like(value, 2 * kSmall));
    Value* tail = code->CreateAnd(value, Like(value, 0x7ff));
    is_exact = code->CreateOr(is_exact, code->CreateICmpEQ(tail, Like(value, 0)));
    Value* odd = code->CreateOr(code->CreateXor(value, tail), Like(value, 0x800));
    value = code->CreateSelect(is_exact, value, odd);
  }
  llvm::Type* real = IsVector(value) ? Lanes(code->getDoubleTy()) : code->getDoubleTy();
  return is_signed ? code->CreateSIToFP(value, real) : code->CreateUIToFP(value, real);
}

// NaN becomes 0x7fff.
Value* NarrowHalf(LaneBuilder& code, Value* value, Type type, Rounding rounding) {
  if (rounding != Rounding::kNearest) {
    return DirectHalf(code, value, NarrowHalf(code, value, type), type, rounding);
  }
  if (Bits(value) == 64) value = NarrowToOdd(code, value);
  Value* nan = code->CreateFCmpUNO(value, value);
  if (IsBrain(type)) {
    Value* bits = code.ToInt(value);
    Value* odd = code->CreateAnd(code->CreateLShr(bits, Like(bits, 16)), Like(bits, 1));
    Value* rounded = code->CreateAdd(code->CreateAdd(bits, Like(bits, 0x7fff)), odd);
    rounded = code->CreateSelect(nan, Like(bits, 0x7fffffff), rounded);
    return code.Resize(code->CreateLShr(rounded, Like(rounded, 16)), 16, false);
  }
  llvm::Type* half = code->getHalfTy();
  Value* rounded = code.ToInt(code->CreateFPTrunc(value, IsVector(value) ? Lanes(half) : half));
  return code->CreateSelect(nan, Like(rounded, 0x7fff), rounded);
}

// .relu, .sat and .satfinite, then to 16 bits. The first and the last keep NaN.
Value* FinishHalf(LaneBuilder& code, const Instruction& instruction, Value* value, Type type) {
  llvm::Type* real = value->getType();
  if (instruction.Has(Modifier::kRelu)) {
    value = code.Intrinsic(llvm::Intrinsic::maximum, {value, llvm::ConstantFP::getZero(real)});
  }
  value = Saturate(code, instruction, value);
  if (instruction.Has(Modifier::kSatfinite)) {
    const double limit = IsBrain(type) ? 0x1.fep127 : 65504.0;
    Value* largest = llvm::ConstantFP::get(real, limit);
    Value* lowest = llvm::ConstantFP::get(real, -limit);
    value = code->CreateSelect(code->CreateFCmpOGT(value, largest), largest, value);
    value = code->CreateSelect(code->CreateFCmpOLT(value, lowest), lowest, value);
  }
  return NarrowHalf(code, value, type, RoundingOf(instruction));
}

}  // namespace torpor::emulator
