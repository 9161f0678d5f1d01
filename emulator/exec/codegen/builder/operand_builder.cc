#include "emulator/exec/codegen/builder/operand_builder.h"

#include <bit>

namespace torpor::emulator {

using ptx::Type;

OperandBuilder::OperandBuilder(LaneBuilder& code, ContextBuilder& context,
                               const FunctionSource& source, RegisterFile& registers,
                               BlockMasks& masks, AddressBuilder& addresses, FirstError& error)
    : code_(code),
      context_(context),
      source_(source),
      registers_(registers),
      masks_(masks),
      addresses_(addresses),
      error_(error) {}

void OperandBuilder::Unsupported(const Instruction& instruction, const std::string& why) {
  error_.Set("unsupported instruction '" + std::string(instruction.spelling) + "'" +
             (why.empty() ? "" : " (" + why + ")") + " in " + std::string(source_.function.name) +
             ", line " + std::to_string(instruction.line) + " of its PTX");
}

bool OperandBuilder::Expect(const Instruction& instruction, std::size_t operands) {
  if (instruction.operands.size() >= operands && !instruction.types.empty()) return true;
  Unsupported(instruction, "operands");
  return false;
}

// The parser keeps real literals as double, whatever the instruction's type.
llvm::Value* OperandBuilder::Immediate(const Operand& operand, Type type) {
  llvm::Type* scalar = code_.ScalarType(type);
  const unsigned bits = scalar->getScalarSizeInBits();
  if (operand.kind != Operand::Kind::kFloat) {
    if (!scalar->isFloatingPointTy()) return Constant(scalar, operand.bits);
    return code_->CreateBitCast(Constant(code_.IntType(bits), operand.bits), scalar);
  }
  const auto value = std::bit_cast<double>(operand.bits);
  if (bits == 64) return code_->CreateBitCast(Constant(code_->getInt64Ty(), operand.bits), scalar);
  if (bits != 32) return llvm::PoisonValue::get(scalar);
  const auto narrow = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return code_->CreateBitCast(Constant(code_->getInt32Ty(), narrow), scalar);
}

// The address of a variable or a function as a value.
llvm::Value* OperandBuilder::ReadSymbol(const Operand& operand, bool scalar) {
  if (operand.kind == Operand::Kind::kFunction) {
    Value* address = code_->getInt64(FunctionAddress(operand.symbol));
    return scalar ? address : code_.Spread(address, 0);
  }
  LaneAddress address = addresses_.Of(operand, source_.module.variables[operand.symbol].space);
  if (address.value == nullptr) return llvm::PoisonValue::get(code_->getInt64Ty());
  if (address.offset != 0) {
    const auto offset = static_cast<std::uint64_t>(address.offset);
    address.value = code_->CreateAdd(address.value, Like(address.value, offset));
  }
  return scalar ? address.value : addresses_.LaneAddresses(address);
}

llvm::Value* OperandBuilder::ReadAny(const Operand& operand, Type type, bool scalar) {
  llvm::Type* wanted = code_.ScalarType(type);
  Value* value = nullptr;
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      value = registers_.Read(operand.reg, scalar);
      break;
    case Operand::Kind::kInteger:
    case Operand::Kind::kFloat:
      value = Immediate(operand, type);
      return scalar ? value : code_.Spread(value, 0);
    case Operand::Kind::kSpecial:
      value = ReadSpecial(operand, scalar);
      break;
    case Operand::Kind::kSymbol:
    case Operand::Kind::kFunction:
      value = ReadSymbol(operand, scalar);
      break;
    default:
      error_.Set("an operand that the emulator does not support: '" + std::string(operand.name) +
                 "' in " + std::string(source_.function.name));
      return llvm::PoisonValue::get(scalar ? wanted : Lanes(wanted));
  }
  if (operand.negated) value = code_->CreateNot(value);
  value = code_.Resize(value, wanted->getScalarSizeInBits(), ptx::IsSigned(type));
  if (!wanted->isFloatingPointTy()) return value;
  return code_->CreateBitCast(value, scalar ? wanted : Lanes(wanted));
}

void OperandBuilder::Write(const Instruction& instruction, const Operand& destination, Value* value,
                           Type type) {
  if (destination.kind == Operand::Kind::kSink) return;
  if (destination.kind != Operand::Kind::kRegister) return Unsupported(instruction, "destination");
  const unsigned bits = ptx::BitWidth(source_.function.registers[destination.reg]);
  WriteRegister(instruction, destination.reg,
                code_.Resize(code_.ToInt(value), bits, ptx::IsSigned(type)));
}

void OperandBuilder::WriteRegister(const Instruction& instruction, std::uint32_t reg,
                                   Value* value) {
  const bool guarded = instruction.guard != ptx::kNoIndex;
  if (source_.lanes.shape(reg).linear()) {
    if (IsVector(value)) value = code_->CreateExtractElement(value, std::uint64_t{0});
    if (guarded) {
      Value* guard = masks_.ScalarGuard(instruction);
      value = code_->CreateSelect(guard, value,
                                  code_->CreateLoad(value->getType(), registers_.slot(reg)));
    }
    code_->CreateStore(value, registers_.slot(reg));
    return;
  }
  if (!IsVector(value)) value = code_.Spread(value, result_.stride, result_.row_stride);
  Value* keep = nullptr;
  if (source_.lanes.needs_blend(masks_.block(), reg)) keep = masks_.mask();
  if (guarded) {
    Value* guard = masks_.Guard(instruction);
    keep = keep == nullptr ? guard : code_->CreateAnd(keep, guard);
  }
  if (keep != nullptr) {
    value =
        code_->CreateSelect(keep, value, code_->CreateLoad(value->getType(), registers_.slot(reg)));
  }
  code_->CreateStore(value, registers_.slot(reg));
}

}  // namespace torpor::emulator
