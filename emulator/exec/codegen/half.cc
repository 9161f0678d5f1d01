// Arithmetic and conversions of f16 and bf16, alone or in pairs.
#include "emulator/exec/codegen/approximation.h"
#include "emulator/exec/codegen/float_values.h"
#include "emulator/exec/codegen/half_values.h"
#include "emulator/exec/codegen/opcodes.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Opcode;
using ptx::Operand;
using ptx::Type;

namespace {

// Number of operands of an operation on halves; 0 for other opcodes.
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

Value* HalfOperation(LaneBuilder& code, const Instruction& instruction,
                     const std::vector<Value*>& inputs) {
  switch (instruction.opcode) {
    case Opcode::kAdd:
      return code->CreateFAdd(inputs[0], inputs[1]);
    case Opcode::kSub:
      return code->CreateFSub(inputs[0], inputs[1]);
    case Opcode::kMul:
      return code->CreateFMul(inputs[0], inputs[1]);
    case Opcode::kFma: {
      llvm::Type* real = IsVector(inputs[0]) ? Lanes(code->getDoubleTy()) : code->getDoubleTy();
      const auto wide = [&](Value* input) { return code->CreateFPExt(input, real); };
      // The product of two is exact.
      return SumToOdd(code, code->CreateFMul(wide(inputs[0]), wide(inputs[1])), wide(inputs[2]));
    }
    case Opcode::kMin:
    case Opcode::kMax:
      return Extreme(code, instruction, instruction.opcode == Opcode::kMin, inputs[0], inputs[1]);
    case Opcode::kAbs:
      return code.Intrinsic(llvm::Intrinsic::fabs, inputs);
    case Opcode::kNeg:
      return code->CreateFNeg(inputs[0]);
    case Opcode::kEx2:
      return Approximation(code.ir()).Exp2(inputs[0]);
    case Opcode::kTanh:
      return Approximation(code.ir()).Tanh(inputs[0]);
    default:
      return nullptr;
  }
}

}  // namespace

// Computes the halves of a pair separately.
bool EmitHalf(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  const Type type = instruction.type();
  const std::size_t count = HalfOperands(instruction.opcode);
  if (count == 0) return false;
  const bool pair = IsHalfPair(type);
  if (instruction.types.size() != 1 || instruction.operands.size() != count + 1) return false;
  Value* result = nullptr;
  for (unsigned part = 0; part < (pair ? 2U : 1U); ++part) {
    std::vector<Value*> inputs;
    for (std::size_t i = 1; i <= count; ++i) {
      inputs.push_back(ReadHalf(to, instruction, instruction.operands[i], type, part));
    }
    Value* value = HalfOperation(code, instruction, inputs);
    if (value == nullptr) return false;
    Value* narrow = FlushHalf(code, instruction, FinishHalf(code, instruction, value, type), type);
    if (!pair) {
      result = narrow;
      continue;
    }
    narrow = code.Resize(narrow, 32, false);
    result = part == 0 ? narrow : code->CreateOr(result, code->CreateShl(narrow, Like(narrow, 16)));
  }
  to.Write(instruction, instruction.operands[0], result, pair ? Type::kB32 : Type::kB16);
  return true;
}

// cvt.rn.f16x2.f32 d, high, low, and all conversions between a 16-bit float and another type.
void EmitHalfCvt(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  const Type into = instruction.types[0];
  const Type from = instruction.types[1];
  const Operand& destination = instruction.operands[0];
  if (IsHalfPair(into)) {
    if (from != Type::kF32 || instruction.operands.size() != 3) return to.Unsupported(instruction);
    const auto half = [&](const Operand& operand) {
      return code.Resize(FinishHalf(code, instruction, to.Read(operand, from), into), 32, false);
    };
    Value* high = half(instruction.operands[1]);
    Value* low = half(instruction.operands[2]);
    Value* both = code->CreateOr(low, code->CreateShl(high, Like(high, 16)));
    return to.Write(instruction, destination, both, Type::kB32);
  }
  if (instruction.operands.size() != 2 || ptx::BitWidth(from) == 128 || IsHalfPair(from)) {
    return to.Unsupported(instruction);
  }
  const bool from_half = IsHalf(from);
  Value* value = to.Read(instruction.operands[1], from_half ? Type::kB16 : from);
  if (from_half) {
    value = WidenHalf(code, value, from);
  } else if (!ptx::IsFloat(from)) {
    value = IntegerToOdd(code, value, ptx::IsSigned(from));
  }
  if (IsHalf(into)) {
    value = FinishHalf(code, instruction, RoundToIntegral(code, instruction, value), into);
    return to.Write(instruction, destination, value, Type::kB16);
  }
  if (!ptx::IsFloat(into)) {
    return to.Write(instruction, destination, FloatToInt(to, instruction, value, into, Type::kF32),
                    into);
  }
  if (into == Type::kF64) value = code->CreateFPExt(value, to.Shaped(code->getDoubleTy()));
  to.Write(instruction, destination,
           Saturate(code, instruction, RoundToIntegral(code, instruction, value)), into);
}

}  // namespace torpor::emulator
