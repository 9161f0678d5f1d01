// Floating-point arithmetic.
#include "emulator/exec/codegen/approximation.h"
#include "emulator/exec/codegen/float_values.h"
#include "emulator/exec/codegen/opcodes.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

namespace {

Value* ReadFloat(OperandBuilder& to, const Instruction& instruction, const Operand& operand) {
  LaneBuilder& code = to.code();
  return Flush(code, instruction, to.Read(operand, instruction.type()));
}

void WriteFloat(OperandBuilder& to, const Instruction& instruction, Value* value) {
  LaneBuilder& code = to.code();
  value = Saturate(code, instruction, Flush(code, instruction, value));
  to.Write(instruction, instruction.operands[0], value, instruction.type());
}

}  // namespace

// LLVM's arithmetic rounds to nearest even; other roundings go through Rounded.
void EmitFloat(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  const bool unary = instruction.opcode == Opcode::kAbs || instruction.opcode == Opcode::kNeg;
  if (!to.Expect(instruction, unary ? 2 : 3)) return;
  const Type type = instruction.type();
  if (type != Type::kF32 && type != Type::kF64) return to.Unsupported(instruction);
  Value* a = ReadFloat(to, instruction, instruction.operands[1]);
  if (unary) {
    return WriteFloat(to, instruction,
                      instruction.opcode == Opcode::kNeg
                          ? code->CreateFNeg(a)
                          : code.Intrinsic(llvm::Intrinsic::fabs, {a}));
  }
  Value* b = ReadFloat(to, instruction, instruction.operands[2]);
  RoundedOperation operation = RoundedOperation::kAdd;
  Value* result = nullptr;
  switch (instruction.opcode) {
    case Opcode::kAdd:
      result = code->CreateFAdd(a, b);
      break;
    case Opcode::kSub:
      operation = RoundedOperation::kSub;
      result = code->CreateFSub(a, b);
      break;
    case Opcode::kMul:
      operation = RoundedOperation::kMul;
      result = code->CreateFMul(a, b);
      break;
    default:
      operation = RoundedOperation::kDiv;
      result = code->CreateFDiv(a, b);
  }
  if (IsRounded(instruction)) result = Rounded(to, instruction, operation, {a, b}, type);
  WriteFloat(to, instruction, result);
}

void EmitFma(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 4)) return;
  const Type type = instruction.type();
  if (type != Type::kF32 && type != Type::kF64) return to.Unsupported(instruction);
  std::vector<Value*> inputs;
  for (unsigned i = 1; i <= 3; ++i) {
    inputs.push_back(ReadFloat(to, instruction, instruction.operands[i]));
  }
  WriteFloat(to, instruction,
             IsRounded(instruction) ? Rounded(to, instruction, RoundedOperation::kFma, inputs, type)
                                    : code.Intrinsic(llvm::Intrinsic::fma, inputs));
}

void EmitFloatMinMax(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 3)) return;
  const Type type = instruction.type();
  if (instruction.operands.size() > 3 || (type != Type::kF32 && type != Type::kF64)) {
    return to.Unsupported(instruction);
  }
  Value* a = ReadFloat(to, instruction, instruction.operands[1]);
  Value* b = ReadFloat(to, instruction, instruction.operands[2]);
  WriteFloat(to, instruction, Extreme(code, instruction, instruction.opcode == Opcode::kMin, a, b));
}

// sqrt and rcp are correctly rounded; the other functions are approximations, as on a GPU.
void EmitSpecial(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 2)) return;
  const Type type = instruction.type();
  const bool algebraic = instruction.opcode == Opcode::kSqrt ||
                         instruction.opcode == Opcode::kRcp || instruction.opcode == Opcode::kRsqrt;
  if (type != Type::kF32 && !(type == Type::kF64 && algebraic)) return to.Unsupported(instruction);
  Value* x = ReadFloat(to, instruction, instruction.operands[1]);
  const Approximation approximation(code.ir());
  Value* one = llvm::ConstantFP::get(x->getType(), 1.0);
  Value* result = nullptr;
  switch (instruction.opcode) {
    case Opcode::kSqrt:
      result = IsRounded(instruction) ? Rounded(to, instruction, RoundedOperation::kSqrt, {x}, type)
                                      : code.Intrinsic(llvm::Intrinsic::sqrt, {x});
      break;
    case Opcode::kRcp:
      result = IsRounded(instruction)
                   ? Rounded(to, instruction, RoundedOperation::kDiv, {one, x}, type)
                   : code->CreateFDiv(one, x);
      break;
    case Opcode::kRsqrt:
      result = code->CreateFDiv(one, code.Intrinsic(llvm::Intrinsic::sqrt, {x}));
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
  WriteFloat(to, instruction, result);
}

void EmitTestProperty(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 2)) return;
  using llvm::FPClassTest;
  FPClassTest test = llvm::fcNone;
  if (instruction.Has(Modifier::kFinite)) test = llvm::fcFinite;
  if (instruction.Has(Modifier::kInfinite)) test = llvm::fcInf;
  if (instruction.Has(Modifier::kNumber)) test = ~llvm::fcNan & llvm::fcAllFlags;
  if (instruction.Has(Modifier::kNotanumber)) test = llvm::fcNan;
  if (instruction.Has(Modifier::kNormal)) test = llvm::fcNormal | llvm::fcZero;
  if (instruction.Has(Modifier::kSubnormal)) test = llvm::fcSubnormal;
  Value* x = to.Read(instruction.operands[1], instruction.type());
  to.Write(instruction, instruction.operands[0], code->createIsFPClass(x, test), Type::kPred);
}

// copysign d, a, b: the magnitude of b with the sign of a.
void EmitCopySign(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 3)) return;
  const Type type = instruction.type();
  Value* result = code.Intrinsic(
      llvm::Intrinsic::copysign,
      {to.Read(instruction.operands[2], type), to.Read(instruction.operands[1], type)});
  to.Write(instruction, instruction.operands[0], result, type);
}

}  // namespace torpor::emulator
