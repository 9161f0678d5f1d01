// Conversions from and to the floats of matrices: tf32 and the pairs of 8 bits.
#include "emulator/exec/codegen/narrow_float.h"

#include "emulator/exec/codegen/float_values.h"
#include "emulator/exec/codegen/half_values.h"
#include "emulator/exec/codegen/opcodes.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Type;

namespace {

// A float of 8 bits.
struct ByteFormat {
  unsigned fraction_bits;
  unsigned bias;
  std::uint64_t largest;  // the bits of the largest number; what is beyond becomes it
};

constexpr ByteFormat kE4m3Format = {3, 7, 0x7e};
constexpr ByteFormat kE5m2Format = {2, 15, 0x7b};
constexpr std::uint64_t kByteNan = 0x7f;

constexpr unsigned kF32FractionBits = 23;
constexpr unsigned kF32Bias = 127;

bool IsBytePair(ptx::Type type) { return type == ptx::Type::kE4m3x2 || type == ptx::Type::kE5m2x2; }

const ByteFormat& FormatOf(ptx::Type type) {
  return type == ptx::Type::kE4m3x2 ? kE4m3Format : kE5m2Format;
}

// f32 with the last 13 bits zero.
Value* ToTf32(LaneBuilder& code, const Instruction& instruction, Value* value) {
  constexpr std::uint64_t kCut = 0x1fff;
  if (instruction.Has(Modifier::kRelu)) {
    value = code.Intrinsic(llvm::Intrinsic::maximum,
                           {value, llvm::ConstantFP::getZero(value->getType())});
  }
  Value* bits = code.ToInt(value);
  Value* rounded = bits;
  if (instruction.Has(Modifier::kRna)) {
    rounded = code->CreateAdd(bits, Like(bits, (kCut + 1) / 2));
  } else if (!instruction.Has(Modifier::kRz)) {
    Value* odd = code->CreateAnd(code->CreateLShr(bits, Like(bits, 13)), Like(bits, 1));
    rounded = code->CreateAdd(code->CreateAdd(bits, Like(bits, kCut / 2)), odd);
  }
  rounded = code->CreateAnd(rounded, Like(bits, ~kCut & 0xffffffff));
  Value* magnitude = code->CreateAnd(bits, Like(bits, 0x7fffffff));
  Value* infinity = Like(bits, 0x7f800000);
  rounded = code->CreateSelect(code->CreateICmpUGE(magnitude, infinity), bits, rounded);
  if (instruction.Has(Modifier::kSatfinite)) {
    Value* sign = code->CreateAnd(bits, Like(bits, 0x80000000));
    Value* unsigned_bits = code->CreateAnd(rounded, Like(bits, 0x7fffffff));
    rounded = code->CreateSelect(code->CreateICmpEQ(unsigned_bits, infinity),
                                 code->CreateOr(sign, Like(bits, 0x7f7fe000)), rounded);
  }
  Value* nan = code->CreateICmpUGT(magnitude, infinity);
  return code->CreateSelect(nan, Like(bits, 0x7fffffff), rounded);
}

// An f32 to 8 bits, in 32: to nearest, ties to even.
Value* ToByteFloat(LaneBuilder& code, const Instruction& instruction, Value* value, Type type) {
  const ByteFormat& format = FormatOf(type);
  if (instruction.Has(Modifier::kRelu)) {
    value = code.Intrinsic(llvm::Intrinsic::maximum,
                           {value, llvm::ConstantFP::getZero(value->getType())});
  }
  Value* bits = code.ToInt(value);
  Value* sign = code->CreateAnd(code->CreateLShr(bits, Like(bits, 24)), Like(bits, 0x80));
  Value* magnitude = code->CreateAnd(bits, Like(bits, 0x7fffffff));
  // Of normal numbers: cut the fraction, and shift the exponent.
  const unsigned shift = kF32FractionBits - format.fraction_bits;
  Value* odd = code->CreateAnd(code->CreateLShr(magnitude, Like(bits, shift)), Like(bits, 1));
  Value* half = Like(bits, (std::uint64_t{1} << (shift - 1)) - 1);
  Value* cut =
      code->CreateLShr(code->CreateAdd(code->CreateAdd(magnitude, half), odd), Like(bits, shift));
  const std::uint64_t exponents = std::uint64_t{kF32Bias - format.bias} << format.fraction_bits;
  Value* normal = code->CreateSub(cut, Like(bits, exponents));
  // For subnormal numbers: adding a number with a last bit of one unit rounds to units.
  const unsigned unit_exponent = kF32Bias + 1 - format.bias - format.fraction_bits;
  const std::uint64_t large = std::uint64_t{unit_exponent + kF32FractionBits} << kF32FractionBits;
  llvm::Type* real = value->getType();
  Value* sum = code->CreateFAdd(code->CreateBitCast(magnitude, real),
                                code->CreateBitCast(Like(bits, large), real));
  Value* subnormal = code->CreateSub(code.ToInt(sum), Like(bits, large));
  const std::uint64_t min_normal = std::uint64_t{kF32Bias + 1 - format.bias} << kF32FractionBits;
  Value* result =
      code->CreateSelect(code->CreateICmpULT(magnitude, Like(bits, min_normal)), subnormal, normal);
  result = code->CreateBinaryIntrinsic(llvm::Intrinsic::umin, result, Like(bits, format.largest));
  Value* nan = code->CreateICmpUGT(magnitude, Like(bits, 0x7f800000));
  return code->CreateSelect(nan, Like(bits, kByteNan), code->CreateOr(sign, result));
}

// 8 bits, in 32, to f32. Both formats are f16's, but for the place and the bias of the exponent.
Value* FromByteFloat(LaneBuilder& code, Value* byte, Type type) {
  constexpr unsigned kHalfFractionBits = 10;
  constexpr unsigned kHalfBias = 15;
  const ByteFormat& format = FormatOf(type);
  Value* magnitude = code->CreateAnd(byte, Like(byte, 0x7f));
  Value* sign = code->CreateShl(code->CreateAnd(byte, Like(byte, 0x80)), Like(byte, 8));
  Value* shifted = code->CreateShl(magnitude, Like(byte, kHalfFractionBits - format.fraction_bits));
  Value* value = WidenHalf(code, code.Resize(code->CreateOr(sign, shifted), 16, false), Type::kF16);
  if (type == Type::kE5m2x2) return value;
  const double scale = static_cast<double>(1U << (kHalfBias - format.bias));
  value = code->CreateFMul(value, llvm::ConstantFP::get(value->getType(), scale));
  Value* nan = code->CreateICmpEQ(magnitude, Like(byte, kByteNan));
  return code->CreateSelect(nan, llvm::ConstantFP::getNaN(value->getType()), value);
}

}  // namespace

bool IsMatrixFloat(Type type) { return type == Type::kTf32 || IsBytePair(type); }

// f32 to tf32, f32 or f16x2 to a pair of bytes, a pair of bytes to f16x2.
void EmitMatrixFloatCvt(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  const Type into = instruction.types[0];
  const Type from = instruction.types[1];
  const std::size_t operands = instruction.operands.size();
  const bool narrows = IsBytePair(into) && ((from == Type::kF32 && operands == 3) ||
                                            (from == Type::kF16x2 && operands == 2));
  if (narrows) {
    const bool pair = from == Type::kF16x2;
    const auto half = [&](unsigned part) {
      Value* value = pair ? ReadHalf(to, instruction, instruction.operands[1], from, part)
                          : to.Read(instruction.operands[2 - part], from);
      return code.Resize(ToByteFloat(code, instruction, value, into), 16, false);
    };
    Value* high = half(1);
    Value* both = code->CreateOr(half(0), code->CreateShl(high, Like(high, 8)));
    return to.Write(instruction, instruction.operands[0], both, Type::kB16);
  }
  if (into == Type::kTf32 && from == Type::kF32 && operands == 2) {
    Value* rounded = ToTf32(code, instruction, to.Read(instruction.operands[1], from));
    return to.Write(instruction, instruction.operands[0], rounded, Type::kB32);
  }
  if (into == Type::kF16x2 && IsBytePair(from) && operands == 2) {
    Value* bytes = code.Resize(to.Read(instruction.operands[1], Type::kB16), 32, false);
    const auto half = [&](unsigned part) {
      Value* byte = code->CreateAnd(code->CreateLShr(bytes, Like(bytes, std::uint64_t{8} * part)),
                                    Like(bytes, 0xff));
      Value* value = FinishHalf(code, instruction, FromByteFloat(code, byte, from), Type::kF16);
      return code.Resize(value, 32, false);
    };
    Value* high = half(1);
    Value* both = code->CreateOr(half(0), code->CreateShl(high, Like(high, 16)));
    return to.Write(instruction, instruction.operands[0], both, Type::kB32);
  }
  to.Unsupported(instruction);
}

}  // namespace torpor::emulator
