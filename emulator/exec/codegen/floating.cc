// Floating-point arithmetic.
#include <cstddef>

#include "emulator/exec/codegen/approximation.h"
#include "emulator/exec/codegen/directed_rounding.h"
#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

using ptx::Opcode;

llvm::Value* FunctionEmitter::Intrinsic(llvm::Intrinsic::ID id,
                                        const std::vector<Value*>& arguments) {
  return b_.CreateIntrinsic(id, {arguments[0]->getType()}, arguments);
}

bool FunctionEmitter::IsRounded(const Instruction& instruction) const {
  return RoundingOf(instruction) != Rounding::kNearest;
}

Rounding FunctionEmitter::RoundingOf(const Instruction& instruction) const {
  if (instruction.Has(Modifier::kRz)) return Rounding::kZero;
  if (instruction.Has(Modifier::kRm)) return Rounding::kDown;
  if (instruction.Has(Modifier::kRp)) return Rounding::kUp;
  return Rounding::kNearest;
}

// What the CPU has no instruction for, the runtime does lane by lane.
llvm::Value* FunctionEmitter::Rounded(const Instruction& instruction, RoundedOperation operation,
                                      const std::vector<Value*>& inputs, Type result) {
  if (DirectedRounding::Has(operation))
    return DirectedRounding(b_).Emit(operation, RoundingOf(instruction), inputs);
  std::vector<Value*> arguments = {LaneArray(b_.getInt64Ty())};
  for (unsigned i = 0; i < 3; ++i) {
    Value* input = inputs[i < inputs.size() ? i : 0];
    const bool is_signed = operation == RoundedOperation::kFromSigned;
    arguments.push_back(Spill(Resize(Vector(ToInt(input)), 64, is_signed)));
  }
  arguments.push_back(b_.getInt32(static_cast<std::uint32_t>(operation)));
  arguments.push_back(b_.getInt32(static_cast<std::uint32_t>(RoundingOf(instruction))));
  arguments.push_back(b_.getInt32(ptx::BitWidth(result)));
  CallRuntime(offsetof(RuntimeCalls, rounded), b_.getVoidTy(), arguments);
  Value* bits = Resize(Unspill(arguments[0], b_.getInt64Ty()), ptx::BitWidth(result), false);
  Value* value = b_.CreateBitCast(bits, Lanes(ScalarType(result)));
  return scalar_ ? b_.CreateExtractElement(value, std::uint64_t{0}) : value;
}

llvm::Value* FunctionEmitter::Flush(const Instruction& instruction, Value* value) {
  if (!instruction.Has(Modifier::kFtz) || Bits(value) != 32) return value;
  Value* bits = ToInt(value);
  Value* exponent = b_.CreateAnd(bits, Like(bits, 0x7f800000));
  Value* sign = b_.CreateAnd(bits, Like(bits, 0x80000000));
  Value* flushed = b_.CreateSelect(b_.CreateICmpEQ(exponent, Like(bits, 0)), sign, bits);
  return b_.CreateBitCast(flushed, value->getType());
}

llvm::Value* FunctionEmitter::Saturate(const Instruction& instruction, Value* value) {
  if (!instruction.Has(Modifier::kSat)) return value;
  llvm::Type* type = value->getType();
  // NaN becomes 0.
  value = Intrinsic(llvm::Intrinsic::maxnum, {value, llvm::ConstantFP::get(type, 0.0)});
  return Intrinsic(llvm::Intrinsic::minnum, {value, llvm::ConstantFP::get(type, 1.0)});
}

llvm::Value* FunctionEmitter::ReadFloat(const Instruction& instruction, const Operand& operand) {
  return Flush(instruction, Read(operand, instruction.type()));
}

void FunctionEmitter::WriteFloat(const Instruction& instruction, Value* value) {
  value = Saturate(instruction, Flush(instruction, value));
  Write(instruction, instruction.operands[0], value, instruction.type());
}

void FunctionEmitter::EmitFloat(const Instruction& instruction) {
  const bool unary = instruction.opcode == Opcode::kAbs || instruction.opcode == Opcode::kNeg;
  if (!Expect(instruction, unary ? 2 : 3)) return;
  const Type type = instruction.type();
  if (type != Type::kF32 && type != Type::kF64) return Unsupported(instruction);
  Value* a = ReadFloat(instruction, instruction.operands[1]);
  if (unary) {
    return WriteFloat(instruction, instruction.opcode == Opcode::kNeg
                                       ? b_.CreateFNeg(a)
                                       : Intrinsic(llvm::Intrinsic::fabs, {a}));
  }
  Value* b = ReadFloat(instruction, instruction.operands[2]);
  RoundedOperation operation = RoundedOperation::kAdd;
  Value* result = nullptr;
  switch (instruction.opcode) {
    case Opcode::kAdd:
      result = b_.CreateFAdd(a, b);
      break;
    case Opcode::kSub:
      operation = RoundedOperation::kSub;
      result = b_.CreateFSub(a, b);
      break;
    case Opcode::kMul:
      operation = RoundedOperation::kMul;
      result = b_.CreateFMul(a, b);
      break;
    default:
      operation = RoundedOperation::kDiv;
      result = b_.CreateFDiv(a, b);
  }
  if (IsRounded(instruction)) result = Rounded(instruction, operation, {a, b}, type);
  WriteFloat(instruction, result);
}

void FunctionEmitter::EmitFma(const Instruction& instruction) {
  if (!Expect(instruction, 4)) return;
  const Type type = instruction.type();
  if (type != Type::kF32 && type != Type::kF64) return Unsupported(instruction);
  std::vector<Value*> inputs;
  for (unsigned i = 1; i <= 3; ++i) {
    inputs.push_back(ReadFloat(instruction, instruction.operands[i]));
  }
  WriteFloat(instruction, IsRounded(instruction)
                              ? Rounded(instruction, RoundedOperation::kFma, inputs, type)
                              : Intrinsic(llvm::Intrinsic::fma, inputs));
}

// The lesser or greater of two: -0 comes before +0; .NaN hands on a NaN, otherwise the number
// wins. .xorsign.abs looks at magnitudes; the sign is that of the product.
llvm::Value* FunctionEmitter::Extreme(const Instruction& instruction, bool minimum, Value* a,
                                      Value* b) {
  const bool magnitudes = instruction.Has(Modifier::kXorsign);
  Value* signs = b_.CreateXor(ToInt(a), ToInt(b));
  if (magnitudes) {
    a = Intrinsic(llvm::Intrinsic::fabs, {a});
    b = Intrinsic(llvm::Intrinsic::fabs, {b});
  }
  Value* ordered = Intrinsic(minimum ? llvm::Intrinsic::minimum : llvm::Intrinsic::maximum, {a, b});
  if (!instruction.Has(Modifier::kNan)) {
    Value* a_nan = b_.CreateFCmpUNO(a, a);
    Value* b_nan = b_.CreateFCmpUNO(b, b);
    ordered = b_.CreateSelect(a_nan, b, b_.CreateSelect(b_nan, a, ordered));
  }
  if (!magnitudes) return ordered;
  Value* sign = b_.CreateAnd(signs, Like(signs, std::uint64_t{1} << (Bits(signs) - 1)));
  Value* with_sign = b_.CreateBitCast(b_.CreateOr(ToInt(ordered), sign), ordered->getType());
  return b_.CreateSelect(b_.CreateFCmpUNO(ordered, ordered), ordered, with_sign);
}

void FunctionEmitter::EmitFloatMinMax(const Instruction& instruction) {
  if (!Expect(instruction, 3)) return;
  const Type type = instruction.type();
  if (instruction.operands.size() > 3 || (type != Type::kF32 && type != Type::kF64)) {
    return Unsupported(instruction);
  }
  Value* a = ReadFloat(instruction, instruction.operands[1]);
  Value* b = ReadFloat(instruction, instruction.operands[2]);
  WriteFloat(instruction, Extreme(instruction, instruction.opcode == Opcode::kMin, a, b));
}

void FunctionEmitter::EmitSpecial(const Instruction& instruction) {
  if (!Expect(instruction, 2)) return;
  const Type type = instruction.type();
  const bool algebraic = instruction.opcode == Opcode::kSqrt ||
                         instruction.opcode == Opcode::kRcp || instruction.opcode == Opcode::kRsqrt;
  if (type != Type::kF32 && !(type == Type::kF64 && algebraic)) return Unsupported(instruction);
  Value* x = ReadFloat(instruction, instruction.operands[1]);
  const Approximation approximation(b_);
  Value* one = llvm::ConstantFP::get(x->getType(), 1.0);
  Value* result = nullptr;
  switch (instruction.opcode) {
    case Opcode::kSqrt:
      result = IsRounded(instruction) ? Rounded(instruction, RoundedOperation::kSqrt, {x}, type)
                                      : Intrinsic(llvm::Intrinsic::sqrt, {x});
      break;
    case Opcode::kRcp:
      result = IsRounded(instruction) ? Rounded(instruction, RoundedOperation::kDiv, {one, x}, type)
                                      : b_.CreateFDiv(one, x);
      break;
    case Opcode::kRsqrt:
      result = b_.CreateFDiv(one, Intrinsic(llvm::Intrinsic::sqrt, {x}));
      break;
    case Opcode::kSin:
      result = approximation.Sin(x);
      break;
    case Opcode::kCos:
      result = approximation.Cos(x);
      break;
    case Opcode::kEx2:
      result = approximation.Exp2(x);
      break;
    case Opcode::kLg2:
      result = approximation.Log2(x);
      break;
    default:
      result = approximation.Tanh(x);
  }
  WriteFloat(instruction, result);
}

void FunctionEmitter::EmitTestProperty(const Instruction& instruction) {
  if (!Expect(instruction, 2)) return;
  using llvm::FPClassTest;
  FPClassTest test = llvm::fcNone;
  if (instruction.Has(Modifier::kFinite)) test = llvm::fcFinite;
  if (instruction.Has(Modifier::kInfinite)) test = llvm::fcInf;
  if (instruction.Has(Modifier::kNumber)) test = ~llvm::fcNan & llvm::fcAllFlags;
  if (instruction.Has(Modifier::kNotanumber)) test = llvm::fcNan;
  if (instruction.Has(Modifier::kNormal)) test = llvm::fcNormal | llvm::fcZero;
  if (instruction.Has(Modifier::kSubnormal)) test = llvm::fcSubnormal;
  Value* x = Read(instruction.operands[1], instruction.type());
  Write(instruction, instruction.operands[0], b_.createIsFPClass(x, test), Type::kPred);
}

// copysign d, a, b: the magnitude of b with the sign of a.
void FunctionEmitter::EmitCopySign(const Instruction& instruction) {
  if (!Expect(instruction, 3)) return;
  const Type type = instruction.type();
  Value* result = Intrinsic(llvm::Intrinsic::copysign, {Read(instruction.operands[2], type),
                                                        Read(instruction.operands[1], type)});
  Write(instruction, instruction.operands[0], result, type);
}

}  // namespace torpor::emulator
