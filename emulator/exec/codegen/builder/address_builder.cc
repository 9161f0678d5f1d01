#include "emulator/exec/codegen/builder/address_builder.h"

#include <cstddef>
#include <string>

#include "emulator/exec/interface/arena_layout.h"

namespace torpor::emulator {

using ptx::Instruction;
using ptx::Operand;
using ptx::Space;

AddressBuilder::AddressBuilder(LaneBuilder& code, ContextBuilder& context,
                               const FunctionSource& source, RegisterFile& registers,
                               LocalStack& stack, FirstError& error)
    : code_(code),
      context_(context),
      source_(source),
      registers_(registers),
      stack_(stack),
      error_(error) {}

ptx::Space AddressBuilder::SpaceOf(const Instruction& instruction, const Operand& operand) const {
  if (operand.symbol != ptx::kNoIndex) return source_.module.variables[operand.symbol].space;
  return instruction.space();
}

// Lane l's variable lies local_stride * l behind lane 0's.
LaneAddress AddressBuilder::LocalVariable(const ptx::Variable& variable, std::uint32_t symbol) {
  const auto offset = source_.layout.local_offsets.find(symbol);
  if (offset == source_.layout.local_offsets.end()) {
    error_.Set("the address of '" + std::string(variable.name) + "' is taken in " +
               std::string(source_.function.name));
    return LaneAddress{};
  }
  const unsigned row_lanes = code_.row_lanes();
  const std::int64_t row_stride =
      row_lanes < kWarpLanes ? source_.local_stride * std::int64_t{row_lanes} : 0;
  LaneAddress address;
  address.value = code_->CreateAdd(code_->CreatePtrToInt(stack_.frame(), code_->getInt64Ty()),
                                   code_->getInt64(offset->second));
  address.shape = ptx::LaneShape::Linear(source_.local_stride, row_stride, 0);
  return address;
}

// Parameters of a kernel lie in a buffer of the block.
LaneAddress AddressBuilder::ParameterVariable(const ptx::Variable& variable, std::uint32_t symbol) {
  if (!source_.function.HasParameter(symbol)) {
    error_.Set("the address of parameter '" + std::string(variable.name) + "' is taken in " +
               std::string(source_.function.name));
    return LaneAddress{};
  }
  Value* base = context_.Field(offsetof(WarpContext, parameters), code_->getInt64Ty());
  LaneAddress address;
  address.value = code_->CreateAdd(base, code_->getInt64(variable.parameter_offset));
  address.shape = ptx::LaneShape::Uniform();
  return address;
}

// Shared variables have fixed offsets; addresses of global and constant variables come from
// WarpContext::symbols.
LaneAddress AddressBuilder::OfVariable(const Operand& operand, Space space) {
  const ptx::Variable& variable = source_.module.variables[operand.symbol];
  if (space == Space::kLocal) return LocalVariable(variable, operand.symbol);
  if (space == Space::kParam) return ParameterVariable(variable, operand.symbol);
  LaneAddress address;
  address.shape = ptx::LaneShape::Uniform();
  if (space == Space::kShared) {
    address.value = code_->getInt32(source_.layout.shared_offsets.at(operand.symbol));
    return address;
  }
  Value* symbols = context_.Field(offsetof(WarpContext, symbols), code_->getPtrTy());
  address.value = code_.Invariant(code_->CreateLoad(
      code_->getInt64Ty(),
      code_->CreateConstInBoundsGEP1_64(code_->getInt64Ty(), symbols, operand.symbol)));
  return address;
}

LaneAddress AddressBuilder::Of(const Operand& operand, Space space) {
  // See ParameterMemory::Spill.
  if (space == Space::kParam && !source_.function.is_kernel) space = Space::kLocal;
  LaneAddress address;
  if (operand.symbol != ptx::kNoIndex) {
    address = OfVariable(operand, space);
    if (address.value == nullptr) return address;
  } else if (operand.reg != ptx::kNoIndex) {
    address.shape = source_.lanes.shape(operand.reg);
    address.value = registers_.Read(operand.reg, address.linear());
  } else {
    address.shape = ptx::LaneShape::Uniform();
    address.value = code_->getInt64(0);
  }
  address.space = space;
  address.value = code_.Resize(address.value, space == Space::kShared ? 32 : 64, false);
  return Advanced(address, operand.bits);
}

// Keeps small offsets in shared memory apart: a 32-bit sum could wrap, and unless the compiler can
// exclude a wrap, each sum would take a register instead of being a part of an instruction.
LaneAddress AddressBuilder::Advanced(LaneAddress address, std::uint64_t bytes) {
  const auto offset = static_cast<std::int64_t>(bytes);
  const auto small = [](std::int64_t number) {
    return number >= -kMaxSharedOffset / 2 && number <= kMaxSharedOffset / 2;
  };
  if (address.space == Space::kShared && small(offset) && small(address.offset)) {
    address.offset += offset;
  } else if (bytes != 0) {
    address.value = code_->CreateAdd(address.value, Like(address.value, bytes));
  }
  return address;
}

llvm::Value* AddressBuilder::LaneAddresses(const LaneAddress& address) {
  if (!address.linear()) return address.value;
  return code_.Spread(address.value, address.shape.stride, address.shape.row_stride);
}

// Offsets in shared memory are signed here: an access before the block's buffer must fault in the
// guard pages there, not wrap to 4 GiB behind the buffer.
llvm::Value* AddressBuilder::Pointer(const LaneAddress& address, Value* value) {
  if (address.space == Space::kShared) {
    Value* base = context_.Field(offsetof(WarpContext, shared), code_->getPtrTy());
    Value* pointer = code_->CreateGEP(code_->getInt8Ty(), base, value);
    return address.offset == 0
               ? pointer
               : code_->CreateGEP(code_->getInt8Ty(), pointer,
                                  code_->getInt64(static_cast<std::uint64_t>(address.offset)));
  }
  return code_->CreateGEP(code_->getInt8Ty(), llvm::ConstantPointerNull::get(code_->getPtrTy()),
                          value);
}

// The addresses of the first lanes of all rows. `address` is not linear.
llvm::Value* AddressBuilder::RowStarts(const LaneAddress& address) {
  std::vector<int> indices;
  for (unsigned lane = 0; lane < kWarpLanes; lane += code_.row_lanes()) {
    indices.push_back(static_cast<int>(lane));
  }
  return code_->CreateShuffleVector(address.value, indices);
}

// The address of the first lane of a row.
LaneAddress AddressBuilder::RowOf(const LaneAddress& address, unsigned row) {
  LaneAddress result = address;
  if (address.linear()) {
    const std::uint64_t step = row * static_cast<std::uint64_t>(address.shape.row_stride);
    result.value = code_->CreateAdd(address.value, Like(address.value, step));
  } else {
    result.value =
        code_->CreateExtractElement(address.value, std::uint64_t{row} * code_.row_lanes());
  }
  return result;
}

}  // namespace torpor::emulator
