// f16 and bf16, alone or in pairs. A sum or product of two is computed as f32 and rounded once
// more, which gives the same as computing it directly: f32 has more than twice as many digits.
// That does not hold for fma, nor for what is converted from more than 24 digits; those are f64,
// rounded to odd until the last step.
#include "emulator/exec/codegen/approximation.h"
#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

using ptx::Opcode;

namespace {

bool IsBrain(ptx::Type type) { return type == ptx::Type::kBf16 || type == ptx::Type::kBf16x2; }

// What an operation on halves reads; 0 if there is none.
std::size_t HalfOperands(Opcode opcode) {
  switch (opcode) {
    case Opcode::kFma:
      return 3;
    case Opcode::kAdd:
    case Opcode::kSub:
    case Opcode::kMul:
    case Opcode::kMin:
    case Opcode::kMax:
      return 2;
    case Opcode::kAbs:
    case Opcode::kNeg:
    case Opcode::kEx2:
    case Opcode::kTanh:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

bool FunctionEmitter::IsHalf(Type type) { return type >= Type::kF16 && type <= Type::kBf16x2; }

bool FunctionEmitter::IsHalfPair(Type type) {
  return type == Type::kF16x2 || type == Type::kBf16x2;
}

llvm::Value* FunctionEmitter::WidenHalf(Value* bits, Type type) {
  if (IsBrain(type)) {
    Value* wide = Resize(bits, 32, false);
    return ToFloat(b_.CreateShl(wide, Like(wide, 16)));
  }
  llvm::Type* real = b_.getFloatTy();
  return b_.CreateFPExt(ToFloat(bits), IsVector(bits) ? Lanes(real) : real);
}

llvm::Value* FunctionEmitter::FlushHalf(const Instruction& instruction, Value* bits, Type type) {
  if (!instruction.Has(Modifier::kFtz)) return bits;
  Value* exponent = b_.CreateAnd(bits, Like(bits, IsBrain(type) ? 0x7f80 : 0x7c00));
  Value* zero = b_.CreateAnd(bits, Like(bits, 0x8000));
  return b_.CreateSelect(b_.CreateICmpEQ(exponent, Like(bits, 0)), zero, bits);
}

llvm::Value* FunctionEmitter::ReadHalf(const Instruction& instruction, const Operand& operand,
                                       Type type, unsigned part) {
  Value* bits = Read(operand, IsHalfPair(type) ? Type::kB32 : Type::kB16);
  bits = Resize(b_.CreateLShr(bits, Like(bits, std::uint64_t{16} * part)), 16, false);
  return WidenHalf(FlushHalf(instruction, bits, type), type);
}

// The bits of a number rounded to odd: an inexact one has its last bit set, so that it lies on
// the same side of everything shorter as the exact number. `near` was rounded to nearest.
llvm::Value* FunctionEmitter::OddBits(Value* near, Value* inexact, Value* too_large) {
  Value* bits = ToInt(near);
  Value* cut = b_.CreateSelect(too_large, b_.CreateSub(bits, Like(bits, 1)), bits);
  bits = b_.CreateSelect(inexact, b_.CreateOr(cut, Like(cut, 1)), bits);
  return b_.CreateBitCast(bits, near->getType());
}

llvm::Value* FunctionEmitter::SumToOdd(Value* a, Value* b) {
  Value* sum = b_.CreateFAdd(a, b);
  // Knuth's TwoSum: sum + error is exact. NaN where the sum is not finite.
  Value* rest = b_.CreateFSub(sum, a);
  Value* error = b_.CreateFAdd(b_.CreateFSub(a, b_.CreateFSub(sum, rest)), b_.CreateFSub(b, rest));
  Value* zero = llvm::ConstantFP::getZero(sum->getType());
  Value* too_large = b_.CreateXor(b_.CreateFCmpOLT(error, zero), b_.CreateFCmpOLT(sum, zero));
  return OddBits(sum, b_.CreateFCmpONE(error, zero), too_large);
}

llvm::Value* FunctionEmitter::NarrowToOdd(Value* value) {
  llvm::Type* real = b_.getFloatTy();
  Value* near = b_.CreateFPTrunc(value, IsVector(value) ? Lanes(real) : real);
  Value* back = b_.CreateFPExt(near, value->getType());
  Value* too_large = b_.CreateFCmpOGT(Intrinsic(llvm::Intrinsic::fabs, {back}),
                                      Intrinsic(llvm::Intrinsic::fabs, {value}));
  return OddBits(near, b_.CreateFCmpONE(back, value), too_large);
}

// f64 has 53 digits: of integers that may have more, those behind the first 21 round to odd.
llvm::Value* FunctionEmitter::IntegerToOdd(Value* value, bool is_signed) {
  if (Bits(value) == 64) {
    constexpr std::uint64_t kSmall = std::uint64_t{1} << 32;
    Value* is_exact = b_.CreateICmpULT(b_.CreateAdd(value, Like(value, is_signed ? kSmall : 0)),
                                       Like(value, 2 * kSmall));
    Value* tail = b_.CreateAnd(value, Like(value, 0x7ff));
    is_exact = b_.CreateOr(is_exact, b_.CreateICmpEQ(tail, Like(value, 0)));
    Value* odd = b_.CreateOr(b_.CreateXor(value, tail), Like(value, 0x800));
    value = b_.CreateSelect(is_exact, value, odd);
  }
  llvm::Type* real = IsVector(value) ? Lanes(b_.getDoubleTy()) : b_.getDoubleTy();
  return is_signed ? b_.CreateSIToFP(value, real) : b_.CreateUIToFP(value, real);
}

// Of two neighbours the other one, where the nearest lies on the wrong side.
llvm::Value* FunctionEmitter::DirectHalf(Value* exact, Value* nearest, Type type,
                                         Rounding rounding) {
  Value* value = b_.CreateFPExt(WidenHalf(nearest, type), exact->getType());
  Value* negative = b_.CreateICmpSLT(nearest, Like(nearest, 0));
  Value* one = Like(nearest, 1);
  Value* to_zero = b_.CreateSub(nearest, one);
  Value* from_zero = b_.CreateAdd(nearest, one);
  Value* above = b_.CreateFCmpOGT(value, exact);
  Value* below = b_.CreateFCmpOLT(value, exact);
  if (rounding == Rounding::kZero) {
    Value* beyond = b_.CreateSelect(negative, below, above);
    return b_.CreateSelect(beyond, to_zero, nearest);
  }
  if (rounding == Rounding::kDown) {
    // Below +0 comes the first negative number.
    Value* least = b_.CreateICmpEQ(nearest, Like(nearest, 0));
    Value* down = b_.CreateSelect(negative, from_zero, to_zero);
    down = b_.CreateSelect(least, Like(nearest, 0x8001), down);
    return b_.CreateSelect(above, down, nearest);
  }
  Value* least = b_.CreateICmpEQ(nearest, Like(nearest, 0x8000));
  Value* up = b_.CreateSelect(negative, to_zero, from_zero);
  up = b_.CreateSelect(least, one, up);
  return b_.CreateSelect(below, up, nearest);
}

llvm::Value* FunctionEmitter::NarrowHalf(Value* value, Type type, Rounding rounding) {
  if (rounding != Rounding::kNearest) {
    return DirectHalf(value, NarrowHalf(value, type), type, rounding);
  }
  if (Bits(value) == 64) value = NarrowToOdd(value);
  Value* nan = b_.CreateFCmpUNO(value, value);
  if (IsBrain(type)) {
    Value* bits = ToInt(value);
    Value* odd = b_.CreateAnd(b_.CreateLShr(bits, Like(bits, 16)), Like(bits, 1));
    Value* rounded = b_.CreateAdd(b_.CreateAdd(bits, Like(bits, 0x7fff)), odd);
    rounded = b_.CreateSelect(nan, Like(bits, 0x7fffffff), rounded);
    return Resize(b_.CreateLShr(rounded, Like(rounded, 16)), 16, false);
  }
  llvm::Type* half = b_.getHalfTy();
  Value* rounded = ToInt(b_.CreateFPTrunc(value, IsVector(value) ? Lanes(half) : half));
  return b_.CreateSelect(nan, Like(rounded, 0x7fff), rounded);
}

// .relu, .sat and .satfinite, then to 16 bits. The first and the last keep NaN.
llvm::Value* FunctionEmitter::FinishHalf(const Instruction& instruction, Value* value, Type type) {
  llvm::Type* real = value->getType();
  if (instruction.Has(Modifier::kRelu)) {
    value = Intrinsic(llvm::Intrinsic::maximum, {value, llvm::ConstantFP::getZero(real)});
  }
  value = Saturate(instruction, value);
  if (instruction.Has(Modifier::kSatfinite)) {
    const double limit = IsBrain(type) ? 0x1.fep127 : 65504.0;
    Value* largest = llvm::ConstantFP::get(real, limit);
    Value* least = llvm::ConstantFP::get(real, -limit);
    value = b_.CreateSelect(b_.CreateFCmpOGT(value, largest), largest, value);
    value = b_.CreateSelect(b_.CreateFCmpOLT(value, least), least, value);
  }
  return NarrowHalf(value, type, RoundingOf(instruction));
}

llvm::Value* FunctionEmitter::HalfOperation(const Instruction& instruction,
                                            const std::vector<Value*>& inputs) {
  switch (instruction.opcode) {
    case Opcode::kAdd:
      return b_.CreateFAdd(inputs[0], inputs[1]);
    case Opcode::kSub:
      return b_.CreateFSub(inputs[0], inputs[1]);
    case Opcode::kMul:
      return b_.CreateFMul(inputs[0], inputs[1]);
    case Opcode::kFma: {
      llvm::Type* real = IsVector(inputs[0]) ? Lanes(b_.getDoubleTy()) : b_.getDoubleTy();
      const auto wide = [&](Value* input) { return b_.CreateFPExt(input, real); };
      // The product of two is exact.
      return SumToOdd(b_.CreateFMul(wide(inputs[0]), wide(inputs[1])), wide(inputs[2]));
    }
    case Opcode::kMin:
    case Opcode::kMax:
      return Extreme(instruction, instruction.opcode == Opcode::kMin, inputs[0], inputs[1]);
    case Opcode::kAbs:
      return Intrinsic(llvm::Intrinsic::fabs, inputs);
    case Opcode::kNeg:
      return b_.CreateFNeg(inputs[0]);
    case Opcode::kEx2:
      return Approximation(b_).Exp2(inputs[0]);
    case Opcode::kTanh:
      return Approximation(b_).Tanh(inputs[0]);
    default:
      return nullptr;
  }
}

bool FunctionEmitter::EmitHalf(const Instruction& instruction) {
  const Type type = instruction.type();
  const std::size_t count = HalfOperands(instruction.opcode);
  if (count == 0) return false;
  const bool pair = IsHalfPair(type);
  if (instruction.types.size() != 1 || instruction.operands.size() != count + 1) return false;
  Value* result = nullptr;
  for (unsigned part = 0; part < (pair ? 2U : 1U); ++part) {
    std::vector<Value*> inputs;
    for (std::size_t i = 1; i <= count; ++i) {
      inputs.push_back(ReadHalf(instruction, instruction.operands[i], type, part));
    }
    Value* value = HalfOperation(instruction, inputs);
    if (value == nullptr) return false;
    Value* narrow = FlushHalf(instruction, FinishHalf(instruction, value, type), type);
    if (!pair) {
      result = narrow;
      continue;
    }
    narrow = Resize(narrow, 32, false);
    result = part == 0 ? narrow : b_.CreateOr(result, b_.CreateShl(narrow, Like(narrow, 16)));
  }
  Write(instruction, instruction.operands[0], result, pair ? Type::kB32 : Type::kB16);
  return true;
}

// cvt.rn.f16x2.f32 d, high, low, and all conversions between one 16-bit float and something else.
void FunctionEmitter::EmitHalfCvt(const Instruction& instruction) {
  const Type to = instruction.types[0];
  const Type from = instruction.types[1];
  const Operand& destination = instruction.operands[0];
  if (IsHalfPair(to)) {
    if (from != Type::kF32 || instruction.operands.size() != 3) return Unsupported(instruction);
    const auto half = [&](const Operand& operand) {
      return Resize(FinishHalf(instruction, Read(operand, from), to), 32, false);
    };
    Value* high = half(instruction.operands[1]);
    Value* low = half(instruction.operands[2]);
    Value* both = b_.CreateOr(low, b_.CreateShl(high, Like(high, 16)));
    return Write(instruction, destination, both, Type::kB32);
  }
  if (instruction.operands.size() != 2 || ptx::BitWidth(from) == 128 || IsHalfPair(from)) {
    return Unsupported(instruction);
  }
  const bool from_half = IsHalf(from);
  Value* value = Read(instruction.operands[1], from_half ? Type::kB16 : from);
  if (from_half) {
    value = WidenHalf(value, from);
  } else if (!ptx::IsFloat(from)) {
    value = IntegerToOdd(value, ptx::IsSigned(from));
  }
  if (IsHalf(to)) {
    value = FinishHalf(instruction, RoundToIntegral(instruction, value), to);
    return Write(instruction, destination, value, Type::kB16);
  }
  if (!ptx::IsFloat(to)) {
    return Write(instruction, destination, FloatToInt(instruction, value, to, Type::kF32), to);
  }
  if (to == Type::kF64) value = b_.CreateFPExt(value, Shaped(b_.getDoubleTy()));
  Write(instruction, destination, Saturate(instruction, RoundToIntegral(instruction, value)), to);
}

}  // namespace torpor::emulator
