// Reading and writing registers, and the shapes of values.
#include <bit>

#include "emulator/exec/codegen/function_emitter.h"
#include "emulator/ptx/dataflow.h"

namespace torpor::emulator {

llvm::Type* FunctionEmitter::ScalarType(Type type) {
  switch (type) {
    case Type::kF16:
      return b_.getHalfTy();
    case Type::kBf16:
      return b_.getBFloatTy();
    case Type::kF32:
      return b_.getFloatTy();
    case Type::kF64:
      return b_.getDoubleTy();
    case Type::kNone:
      return b_.getInt32Ty();
    default:
      return IntType(ptx::BitWidth(type));
  }
}

llvm::Type* FunctionEmitter::Lanes(llvm::Type* scalar) {
  return llvm::FixedVectorType::get(scalar, kWarpLanes);
}

unsigned FunctionEmitter::Bits(const Value* value) {
  return value->getType()->getScalarSizeInBits();
}

llvm::Value* FunctionEmitter::Constant(llvm::Type* type, std::uint64_t bits) {
  return llvm::ConstantInt::get(type, bits);
}

llvm::Value* FunctionEmitter::Like(const Value* shape, std::uint64_t bits) {
  return llvm::ConstantInt::get(shape->getType(), bits);
}

llvm::Value* FunctionEmitter::ToInt(Value* value) {
  if (!value->getType()->isFPOrFPVectorTy()) return value;
  llvm::Type* type = IntType(Bits(value));
  return b_.CreateBitCast(value, IsVector(value) ? Lanes(type) : type);
}

llvm::Value* FunctionEmitter::ToFloat(Value* value) {
  if (value->getType()->isFPOrFPVectorTy()) return value;
  llvm::Type* type = Bits(value) == 64   ? b_.getDoubleTy()
                     : Bits(value) == 16 ? b_.getHalfTy()
                                         : b_.getFloatTy();
  value = Resize(value, type->getScalarSizeInBits(), false);
  return b_.CreateBitCast(value, IsVector(value) ? Lanes(type) : type);
}

llvm::Value* FunctionEmitter::Resize(Value* value, unsigned bits, bool is_signed) {
  llvm::Type* type = IntType(bits);
  if (IsVector(value)) type = Lanes(type);
  return is_signed ? b_.CreateSExtOrTrunc(value, type) : b_.CreateZExtOrTrunc(value, type);
}

llvm::Value* FunctionEmitter::Spread(Value* scalar, std::int64_t stride, std::int64_t row_stride) {
  Value* splat = b_.CreateVectorSplat(kWarpLanes, scalar);
  if (stride == 0 && row_stride == 0) return splat;
  const unsigned width = row_lanes();
  std::vector<llvm::Constant*> steps;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    const std::uint64_t step = lane % width * static_cast<std::uint64_t>(stride) +
                               lane / width * static_cast<std::uint64_t>(row_stride);
    steps.push_back(llvm::ConstantInt::get(scalar->getType(), step));
  }
  return b_.CreateAdd(splat, llvm::ConstantVector::get(steps));
}

llvm::Value* FunctionEmitter::ReadRegister(std::uint32_t reg, bool scalar) {
  Value* slot = slots_[reg];
  const ptx::LaneShape& shape = lanes_.shape(reg);
  llvm::Type* type = IntType(ptx::BitWidth(function_.registers[reg]));
  if (shape.linear()) {
    Value* value = b_.CreateLoad(type, slot);
    return scalar ? value : Spread(value, shape.stride, shape.row_stride);
  }
  Value* value = b_.CreateLoad(Lanes(type), slot);
  return scalar ? b_.CreateExtractElement(value, std::uint64_t{0}) : value;
}

llvm::Value* FunctionEmitter::Immediate(const Operand& operand, Type type) {
  llvm::Type* scalar = ScalarType(type);
  const unsigned bits = scalar->getScalarSizeInBits();
  if (operand.kind != Operand::Kind::kFloat) {
    if (!scalar->isFloatingPointTy()) return Constant(scalar, operand.bits);
    return b_.CreateBitCast(Constant(IntType(bits), operand.bits), scalar);
  }
  const auto value = std::bit_cast<double>(operand.bits);
  if (bits == 64) return b_.CreateBitCast(Constant(b_.getInt64Ty(), operand.bits), scalar);
  if (bits != 32) return llvm::PoisonValue::get(scalar);
  const auto narrow = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return b_.CreateBitCast(Constant(b_.getInt32Ty(), narrow), scalar);
}

llvm::Value* FunctionEmitter::ReadSymbol(const Operand& operand, bool scalar) {
  if (operand.kind == Operand::Kind::kFunction) {
    Value* address = b_.getInt64(FunctionAddress(operand.symbol));
    return scalar ? address : Spread(address, 0);
  }
  Address address = AddressOf(operand, module_.variables[operand.symbol].space);
  if (address.value == nullptr) return llvm::PoisonValue::get(b_.getInt64Ty());
  if (address.offset != 0) {
    const auto offset = static_cast<std::uint64_t>(address.offset);
    address.value = b_.CreateAdd(address.value, Like(address.value, offset));
  }
  return scalar ? address.value : LaneAddresses(address);
}

llvm::Value* FunctionEmitter::ReadAny(const Operand& operand, Type type, bool scalar) {
  llvm::Type* wanted = ScalarType(type);
  Value* value = nullptr;
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      value = ReadRegister(operand.reg, scalar);
      break;
    case Operand::Kind::kInteger:
    case Operand::Kind::kFloat:
      value = Immediate(operand, type);
      return scalar ? value : Spread(value, 0);
    case Operand::Kind::kSpecial:
      value = ReadSpecial(operand, scalar);
      break;
    case Operand::Kind::kSymbol:
    case Operand::Kind::kFunction:
      value = ReadSymbol(operand, scalar);
      break;
    default:
      unit_.Fail("an operand that the emulator does not support: '" + std::string(operand.name) +
                 "' in " + std::string(function_.name));
      return llvm::PoisonValue::get(scalar ? wanted : Lanes(wanted));
  }
  if (operand.negated) value = b_.CreateNot(value);
  value = Resize(value, wanted->getScalarSizeInBits(), ptx::IsSigned(type));
  if (!wanted->isFloatingPointTy()) return value;
  return b_.CreateBitCast(value, scalar ? wanted : Lanes(wanted));
}

llvm::Value* FunctionEmitter::Read(const Operand& operand, Type type) {
  return ReadAny(operand, type, scalar_);
}

llvm::Value* FunctionEmitter::ReadScalar(const Operand& operand, Type type) {
  return ReadAny(operand, type, true);
}

llvm::Value* FunctionEmitter::ReadVector(const Operand& operand, Type type) {
  return ReadAny(operand, type, false);
}

void FunctionEmitter::Write(const Instruction& instruction, const Operand& destination,
                            Value* value, Type type) {
  if (destination.kind == Operand::Kind::kSink) return;
  if (destination.kind != Operand::Kind::kRegister) return Unsupported(instruction, "destination");
  const unsigned bits = ptx::BitWidth(function_.registers[destination.reg]);
  WriteRegister(instruction, destination.reg, Resize(ToInt(value), bits, ptx::IsSigned(type)));
}

void FunctionEmitter::WriteRegister(const Instruction& instruction, std::uint32_t reg,
                                    Value* value) {
  const bool guarded = instruction.guard != ptx::kNoIndex;
  if (lanes_.shape(reg).linear()) {
    if (IsVector(value)) value = b_.CreateExtractElement(value, std::uint64_t{0});
    if (guarded) {
      Value* guard = ReadRegister(instruction.guard, true);
      if (instruction.guard_negated) guard = b_.CreateNot(guard);
      value = b_.CreateSelect(guard, value, b_.CreateLoad(value->getType(), slots_[reg]));
    }
    b_.CreateStore(value, slots_[reg]);
    return;
  }
  if (!IsVector(value)) value = Spread(value, result_.stride, result_.row_stride);
  Value* keep = nullptr;
  if (lanes_.needs_blend(block_, reg)) keep = mask_;
  if (guarded) {
    Value* guard = GuardVector(instruction);
    keep = keep == nullptr ? guard : b_.CreateAnd(keep, guard);
  }
  if (keep != nullptr) {
    value = b_.CreateSelect(keep, value, b_.CreateLoad(value->getType(), slots_[reg]));
  }
  b_.CreateStore(value, slots_[reg]);
}

}  // namespace torpor::emulator
