// cvt.
#include <cmath>

#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

void FunctionEmitter::EmitCvt(const Instruction& instruction) {
  if (!Expect(instruction, 2) || instruction.types.size() != 2) return Unsupported(instruction);
  const Type to = instruction.types[0];
  const Type from = instruction.types[1];
  if (IsMatrixFloat(to) || IsMatrixFloat(from)) return EmitMatrixFloatCvt(instruction);
  if (!ptx::IsFundamental(to) || !ptx::IsFundamental(from)) return Unsupported(instruction);
  const bool only_half = instruction.Has(Modifier::kRelu) || instruction.Has(Modifier::kSatfinite);
  if (only_half && !IsHalf(to)) return Unsupported(instruction);
  if (IsHalf(to) || IsHalf(from)) return EmitHalfCvt(instruction);
  if (instruction.operands.size() != 2) return Unsupported(instruction);
  const bool to_real = ptx::IsFloat(to);
  const bool from_real = ptx::IsFloat(from);
  Value* value = Read(instruction.operands[1], from);
  Value* result = nullptr;
  if (to_real) {
    result = from_real ? FloatToFloat(instruction, value, to, from)
                       : IntToFloat(instruction, value, to, from);
  } else {
    result = from_real ? FloatToInt(instruction, value, to, from)
                       : IntToInt(instruction, value, to, from);
  }
  if (result != nullptr) Write(instruction, instruction.operands[0], result, to);
}

llvm::Value* FunctionEmitter::IntToInt(const Instruction& instruction, Value* value, Type to,
                                       Type from) {
  const unsigned to_bits = ptx::BitWidth(to);
  const bool from_signed = ptx::IsSigned(from);
  if (!instruction.Has(Modifier::kSat)) return Resize(value, to_bits, from_signed);
  // Clamp in a type that holds both ranges.
  const bool to_signed = ptx::IsSigned(to);
  Value* wide = Resize(value, 128, from_signed);
  llvm::APInt low =
      to_signed ? llvm::APInt::getSignedMinValue(to_bits).sext(128) : llvm::APInt::getZero(128);
  llvm::APInt high = to_signed ? llvm::APInt::getSignedMaxValue(to_bits).sext(128)
                               : llvm::APInt::getMaxValue(to_bits).zext(128);
  llvm::Type* type = wide->getType();
  wide = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, wide, llvm::ConstantInt::get(type, low));
  wide = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, wide, llvm::ConstantInt::get(type, high));
  return Resize(wide, to_bits, false);
}

llvm::Value* FunctionEmitter::IntToFloat(const Instruction& instruction, Value* value, Type to,
                                         Type from) {
  const bool is_signed = ptx::IsSigned(from);
  if (IsRounded(instruction)) {
    value = Resize(value, 64, is_signed);
    return Rounded(instruction,
                   is_signed ? RoundedOperation::kFromSigned : RoundedOperation::kFromUnsigned,
                   {value}, to);
  }
  llvm::Type* type = Shaped(ScalarType(to));
  Value* result = is_signed ? b_.CreateSIToFP(value, type) : b_.CreateUIToFP(value, type);
  return Saturate(instruction, result);
}

llvm::Value* FunctionEmitter::RoundToIntegral(const Instruction& instruction, Value* value) {
  if (instruction.Has(Modifier::kRni)) return Intrinsic(llvm::Intrinsic::roundeven, {value});
  if (instruction.Has(Modifier::kRzi)) return Intrinsic(llvm::Intrinsic::trunc, {value});
  if (instruction.Has(Modifier::kRmi)) return Intrinsic(llvm::Intrinsic::floor, {value});
  if (instruction.Has(Modifier::kRpi)) return Intrinsic(llvm::Intrinsic::ceil, {value});
  return value;
}

llvm::Value* FunctionEmitter::FloatToInt(const Instruction& instruction, Value* value, Type to,
                                         Type from) {
  value = RoundToIntegral(instruction, Flush(instruction, value));
  const unsigned bits = ptx::BitWidth(to);
  llvm::Type* type = Shaped(IntType(bits));
  const auto id = ptx::IsSigned(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  Value* result = b_.CreateIntrinsic(id, {type, value->getType()}, {value});
  // Where a double or a 64-bit integer is involved, NaN is not 0 but the lowest integer.
  if (from == Type::kF64 || bits == 64) {
    Value* nan = b_.CreateFCmpUNO(value, value);
    result = b_.CreateSelect(nan, Like(result, std::uint64_t{1} << (bits - 1)), result);
  }
  return result;
}

llvm::Value* FunctionEmitter::FloatToFloat(const Instruction& instruction, Value* value, Type to,
                                           Type from) {
  value = RoundToIntegral(instruction, Flush(instruction, value));
  llvm::Type* type = Shaped(ScalarType(to));
  const unsigned to_bits = ptx::BitWidth(to);
  const unsigned from_bits = ptx::BitWidth(from);
  if (to_bits > from_bits) {
    value = b_.CreateFPExt(value, type);
  } else if (to_bits < from_bits) {
    value = IsRounded(instruction) ? Rounded(instruction, RoundedOperation::kNarrow, {value}, to)
                                   : b_.CreateFPTrunc(value, type);
  }
  return Saturate(instruction, Flush(instruction, value));
}

}  // namespace torpor::emulator
