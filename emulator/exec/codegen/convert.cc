// cvt.
#include "emulator/exec/codegen/float_values.h"
#include "emulator/exec/codegen/half_values.h"
#include "emulator/exec/codegen/narrow_float.h"
#include "emulator/exec/codegen/opcodes.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Type;

namespace {

Value* IntToInt(LaneBuilder& code, const Instruction& instruction, Value* value, Type into,
                Type from) {
  const unsigned to_bits = ptx::BitWidth(into);
  const bool from_signed = ptx::IsSigned(from);
  if (!instruction.Has(Modifier::kSat)) return code.Resize(value, to_bits, from_signed);
  // Clamp in a type that holds both ranges.
  const bool to_signed = ptx::IsSigned(into);
  Value* wide = code.Resize(value, 128, from_signed);
  llvm::APInt low =
      to_signed ? llvm::APInt::getSignedMinValue(to_bits).sext(128) : llvm::APInt::getZero(128);
  llvm::APInt high = to_signed ? llvm::APInt::getSignedMaxValue(to_bits).sext(128)
                               : llvm::APInt::getMaxValue(to_bits).zext(128);
  llvm::Type* type = wide->getType();
  wide =
      code->CreateBinaryIntrinsic(llvm::Intrinsic::smax, wide, llvm::ConstantInt::get(type, low));
  wide =
      code->CreateBinaryIntrinsic(llvm::Intrinsic::smin, wide, llvm::ConstantInt::get(type, high));
  return code.Resize(wide, to_bits, false);
}

Value* IntToFloat(OperandBuilder& to, const Instruction& instruction, Value* value, Type into,
                  Type from) {
  LaneBuilder& code = to.code();
  const bool is_signed = ptx::IsSigned(from);
  if (IsRounded(instruction)) {
    value = code.Resize(value, 64, is_signed);
    return Rounded(to, instruction,
                   is_signed ? RoundedOperation::kFromSigned : RoundedOperation::kFromUnsigned,
                   {value}, into);
  }
  llvm::Type* type = to.Shaped(code.ScalarType(into));
  Value* result = is_signed ? code->CreateSIToFP(value, type) : code->CreateUIToFP(value, type);
  return Saturate(code, instruction, result);
}

Value* FloatToFloat(OperandBuilder& to, const Instruction& instruction, Value* value, Type into,
                    Type from) {
  LaneBuilder& code = to.code();
  value = RoundToIntegral(code, instruction, Flush(code, instruction, value));
  llvm::Type* type = to.Shaped(code.ScalarType(into));
  const unsigned to_bits = ptx::BitWidth(into);
  const unsigned from_bits = ptx::BitWidth(from);
  if (to_bits > from_bits) {
    value = code->CreateFPExt(value, type);
  } else if (to_bits < from_bits) {
    value = IsRounded(instruction)
                ? Rounded(to, instruction, RoundedOperation::kNarrow, {value}, into)
                : code->CreateFPTrunc(value, type);
  }
  return Saturate(code, instruction, Flush(code, instruction, value));
}

}  // namespace

// Chooses by kind of source and destination; halves and matrix floats have functions of their own.
void EmitCvt(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 2) || instruction.types.size() != 2) {
    return to.Unsupported(instruction);
  }
  const Type into = instruction.types[0];
  const Type from = instruction.types[1];
  if (IsMatrixFloat(into) || IsMatrixFloat(from)) return EmitMatrixFloatCvt(to, instruction);
  if (!ptx::IsFundamental(into) || !ptx::IsFundamental(from)) return to.Unsupported(instruction);
  const bool only_half = instruction.Has(Modifier::kRelu) || instruction.Has(Modifier::kSatfinite);
  if (only_half && !IsHalf(into)) return to.Unsupported(instruction);
  if (IsHalf(into) || IsHalf(from)) return EmitHalfCvt(to, instruction);
  if (instruction.operands.size() != 2) return to.Unsupported(instruction);
  const bool to_real = ptx::IsFloat(into);
  const bool from_real = ptx::IsFloat(from);
  Value* value = to.Read(instruction.operands[1], from);
  Value* result = nullptr;
  if (to_real) {
    result = from_real ? FloatToFloat(to, instruction, value, into, from)
                       : IntToFloat(to, instruction, value, into, from);
  } else {
    result = from_real ? FloatToInt(to, instruction, value, into, from)
                       : IntToInt(code, instruction, value, into, from);
  }
  if (result != nullptr) to.Write(instruction, instruction.operands[0], result, into);
}

}  // namespace torpor::emulator
