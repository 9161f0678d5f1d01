#include "emulator/exec/codegen/float_values.h"

#include <cstddef>

#include "emulator/exec/codegen/directed_rounding.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Type;

Rounding RoundingOf(const Instruction& instruction) {
  if (instruction.Has(Modifier::kRz)) return Rounding::kZero;
  if (instruction.Has(Modifier::kRm)) return Rounding::kDown;
  if (instruction.Has(Modifier::kRp)) return Rounding::kUp;
  return Rounding::kNearest;
}

bool IsRounded(const Instruction& instruction) {
  return RoundingOf(instruction) != Rounding::kNearest;
}

// Without a CPU instruction, the runtime computes lane by lane.
Value* Rounded(OperandBuilder& to, const Instruction& instruction, RoundedOperation operation,
               const std::vector<Value*>& inputs, Type result) {
  LaneBuilder& code = to.code();
  if (DirectedRounding::Has(operation)) {
    return DirectedRounding(code.ir()).Emit(operation, RoundingOf(instruction), inputs);
  }
  std::vector<Value*> arguments = {code.LaneArray(code->getInt64Ty())};
  for (unsigned i = 0; i < 3; ++i) {
    Value* input = inputs[i < inputs.size() ? i : 0];
    const bool is_signed = operation == RoundedOperation::kFromSigned;
    arguments.push_back(code.Spill(code.Resize(code.Vector(code.ToInt(input)), 64, is_signed)));
  }
  arguments.push_back(code->getInt32(static_cast<std::uint32_t>(operation)));
  arguments.push_back(code->getInt32(static_cast<std::uint32_t>(RoundingOf(instruction))));
  arguments.push_back(code->getInt32(ptx::BitWidth(result)));
  to.context().Call(offsetof(RuntimeCalls, rounded), code->getVoidTy(), arguments);
  Value* bits =
      code.Resize(code.Unspill(arguments[0], code->getInt64Ty()), ptx::BitWidth(result), false);
  Value* value = code->CreateBitCast(bits, Lanes(code.ScalarType(result)));
  return to.scalar() ? code->CreateExtractElement(value, std::uint64_t{0}) : value;
}

Value* Flush(LaneBuilder& code, const Instruction& instruction, Value* value) {
  if (!instruction.Has(Modifier::kFtz) || Bits(value) != 32) return value;
  Value* bits = code.ToInt(value);
  Value* exponent = code->CreateAnd(bits, Like(bits, 0x7f800000));
  Value* sign = code->CreateAnd(bits, Like(bits, 0x80000000));
  Value* flushed = code->CreateSelect(code->CreateICmpEQ(exponent, Like(bits, 0)), sign, bits);
  return code->CreateBitCast(flushed, value->getType());
}

Value* Saturate(LaneBuilder& code, const Instruction& instruction, Value* value) {
  if (!instruction.Has(Modifier::kSat)) return value;
  llvm::Type* type = value->getType();
  // NaN becomes 0.
  value = code.Intrinsic(llvm::Intrinsic::maxnum, {value, llvm::ConstantFP::get(type, 0.0)});
  return code.Intrinsic(llvm::Intrinsic::minnum, {value, llvm::ConstantFP::get(type, 1.0)});
}

// The lesser or greater of two: -0 comes before +0; .NaN hands on a NaN, otherwise the number
// wins. .xorsign.abs looks at magnitudes; the sign is that of the product.
Value* Extreme(LaneBuilder& code, const Instruction& instruction, bool minimum, Value* a,
               Value* b) {
  const bool magnitudes = instruction.Has(Modifier::kXorsign);
  Value* signs = code->CreateXor(code.ToInt(a), code.ToInt(b));
  if (magnitudes) {
    a = code.Intrinsic(llvm::Intrinsic::fabs, {a});
    b = code.Intrinsic(llvm::Intrinsic::fabs, {b});
  }
  Value* ordered =
      code.Intrinsic(minimum ? llvm::Intrinsic::minimum : llvm::Intrinsic::maximum, {a, b});
  if (!instruction.Has(Modifier::kNan)) {
    Value* a_nan = code->CreateFCmpUNO(a, a);
    Value* b_nan = code->CreateFCmpUNO(b, b);
    ordered = code->CreateSelect(a_nan, b, code->CreateSelect(b_nan, a, ordered));
  }
  if (!magnitudes) return ordered;
  Value* sign = code->CreateAnd(signs, Like(signs, std::uint64_t{1} << (Bits(signs) - 1)));
  Value* with_sign =
      code->CreateBitCast(code->CreateOr(code.ToInt(ordered), sign), ordered->getType());
  return code->CreateSelect(code->CreateFCmpUNO(ordered, ordered), ordered, with_sign);
}

Value* RoundToIntegral(LaneBuilder& code, const Instruction& instruction, Value* value) {
  if (instruction.Has(Modifier::kRni)) return code.Intrinsic(llvm::Intrinsic::roundeven, {value});
  if (instruction.Has(Modifier::kRzi)) return code.Intrinsic(llvm::Intrinsic::trunc, {value});
  if (instruction.Has(Modifier::kRmi)) return code.Intrinsic(llvm::Intrinsic::floor, {value});
  if (instruction.Has(Modifier::kRpi)) return code.Intrinsic(llvm::Intrinsic::ceil, {value});
  return value;
}

Value* FloatToInt(OperandBuilder& to, const Instruction& instruction, Value* value, Type into,
                  Type from) {
  LaneBuilder& code = to.code();
  value = RoundToIntegral(code, instruction, Flush(code, instruction, value));
  const unsigned bits = ptx::BitWidth(into);
  llvm::Type* type = to.Shaped(code.IntType(bits));
  const auto id = ptx::IsSigned(into) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  Value* result = code->CreateIntrinsic(id, {type, value->getType()}, {value});
  // Where a double or a 64-bit integer is involved, NaN is not 0 but the lowest integer.
  if (from == Type::kF64 || bits == 64) {
    Value* nan = code->CreateFCmpUNO(value, value);
    result = code->CreateSelect(nan, Like(result, std::uint64_t{1} << (bits - 1)), result);
  }
  return result;
}

}  // namespace torpor::emulator
