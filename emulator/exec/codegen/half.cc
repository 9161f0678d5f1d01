// f16 and bf16, alone or in pairs. Computed as f32 and rounded once more, which for sums,
// products and quotients gives the same as computing them directly.
#include "emulator/exec/codegen/approximation.h"
#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

using ptx::Opcode;

bool FunctionEmitter::IsHalf(Type type) { return type >= Type::kF16 && type <= Type::kBf16x2; }

llvm::Value* FunctionEmitter::WidenHalf(Value* bits, Type type) {
  if (type == Type::kBf16 || type == Type::kBf16x2) {
    Value* wide = Resize(bits, 32, false);
    return ToFloat(b_.CreateShl(wide, Like(wide, 16)));
  }
  llvm::Type* real = b_.getFloatTy();
  return b_.CreateFPExt(ToFloat(bits), IsVector(bits) ? Lanes(real) : real);
}

llvm::Value* FunctionEmitter::NarrowHalf(Value* value, Type type) {
  if (type == Type::kBf16 || type == Type::kBf16x2) {
    Value* bits = ToInt(value);
    Value* odd = b_.CreateAnd(b_.CreateLShr(bits, Like(bits, 16)), Like(bits, 1));
    Value* rounded = b_.CreateAdd(b_.CreateAdd(bits, Like(bits, 0x7fff)), odd);
    rounded = b_.CreateSelect(b_.CreateFCmpUNO(value, value), Like(bits, 0x7fffffff), rounded);
    return Resize(b_.CreateLShr(rounded, Like(rounded, 16)), 16, false);
  }
  llvm::Type* half = b_.getHalfTy();
  return ToInt(b_.CreateFPTrunc(value, IsVector(value) ? Lanes(half) : half));
}

llvm::Value* FunctionEmitter::HalfOperation(const Instruction& instruction,
                                            const std::vector<Value*>& inputs) {
  const auto extreme = [&](llvm::Intrinsic::ID number, llvm::Intrinsic::ID nan) {
    return Intrinsic(instruction.Has(Modifier::kNan) ? nan : number, inputs);
  };
  switch (instruction.opcode) {
    case Opcode::kAdd:
      return b_.CreateFAdd(inputs[0], inputs[1]);
    case Opcode::kSub:
      return b_.CreateFSub(inputs[0], inputs[1]);
    case Opcode::kMul:
      return b_.CreateFMul(inputs[0], inputs[1]);
    case Opcode::kFma:
      return Intrinsic(llvm::Intrinsic::fma, inputs);
    case Opcode::kMin:
      return extreme(llvm::Intrinsic::minnum, llvm::Intrinsic::minimum);
    case Opcode::kMax:
      return extreme(llvm::Intrinsic::maxnum, llvm::Intrinsic::maximum);
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
  const std::size_t count =
      instruction.opcode == Opcode::kFma ? 3
      : instruction.opcode == Opcode::kAbs || instruction.opcode == Opcode::kNeg ||
              instruction.opcode == Opcode::kEx2 || instruction.opcode == Opcode::kTanh
          ? 1
          : 2;
  const bool pair = ptx::BitWidth(type) == 32;
  if (instruction.types.size() != 1 || instruction.operands.size() != count + 1) return false;
  Value* result = nullptr;
  for (unsigned part = 0; part < (pair ? 2U : 1U); ++part) {
    std::vector<Value*> inputs;
    for (std::size_t i = 1; i <= count; ++i) {
      Value* bits = Read(instruction.operands[i], pair ? Type::kB32 : Type::kB16);
      bits = Resize(b_.CreateLShr(bits, Like(bits, std::uint64_t{16} * part)), 16, false);
      inputs.push_back(WidenHalf(bits, type));
    }
    Value* value = HalfOperation(instruction, inputs);
    if (value == nullptr) return false;
    if (instruction.Has(Modifier::kRelu)) {
      Value* zero = llvm::ConstantFP::getZero(value->getType());
      value = Intrinsic(llvm::Intrinsic::maxnum, {value, zero});
    }
    Value* narrow = NarrowHalf(Saturate(instruction, value), type);
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
  const bool to_pair = to == Type::kF16x2 || to == Type::kBf16x2;
  const auto finish = [&](Value* value) {
    if (instruction.Has(Modifier::kRelu)) {
      Value* zero = llvm::ConstantFP::getZero(value->getType());
      value = Intrinsic(llvm::Intrinsic::maxnum, {value, zero});
    }
    return NarrowHalf(Saturate(instruction, value), to);
  };
  if (IsRounded(instruction) && IsHalf(to)) return Unsupported(instruction, "rounding");
  if (to_pair) {
    if (from != Type::kF32 || instruction.operands.size() != 3) return Unsupported(instruction);
    Value* high = Resize(finish(Read(instruction.operands[1], from)), 32, false);
    Value* low = Resize(finish(Read(instruction.operands[2], from)), 32, false);
    Value* both = b_.CreateOr(low, b_.CreateShl(high, Like(high, 16)));
    return Write(instruction, destination, both, Type::kB32);
  }
  if (instruction.operands.size() != 2 || ptx::BitWidth(from) == 128 || from == Type::kF16x2 ||
      from == Type::kBf16x2) {
    return Unsupported(instruction);
  }
  const bool from_half = IsHalf(from);
  Value* value = Read(instruction.operands[1], from_half ? Type::kB16 : from);
  if (from_half) {
    value = WidenHalf(value, from);
  } else if (!ptx::IsFloat(from)) {
    llvm::Type* real = Shaped(b_.getFloatTy());
    value = ptx::IsSigned(from) ? b_.CreateSIToFP(value, real) : b_.CreateUIToFP(value, real);
  } else if (from == Type::kF64) {
    value = b_.CreateFPTrunc(value, Shaped(b_.getFloatTy()));
  }
  if (IsHalf(to)) {
    value = finish(RoundToIntegral(instruction, value));
    return Write(instruction, destination, value, Type::kB16);
  }
  if (!ptx::IsFloat(to)) {
    return Write(instruction, destination, FloatToInt(instruction, value, to, Type::kF32), to);
  }
  if (to == Type::kF64) value = b_.CreateFPExt(value, Shaped(b_.getDoubleTy()));
  Write(instruction, destination, Saturate(instruction, RoundToIntegral(instruction, value)), to);
}

}  // namespace torpor::emulator
