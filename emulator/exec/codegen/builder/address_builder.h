#pragma once

#include <cstdint>

#include "emulator/exec/codegen/builder/address.h"
#include "emulator/exec/codegen/builder/context_builder.h"
#include "emulator/exec/codegen/builder/first_error.h"
#include "emulator/exec/codegen/builder/function_source.h"
#include "emulator/exec/codegen/builder/lane_builder.h"
#include "emulator/exec/codegen/builder/local_stack.h"
#include "emulator/exec/codegen/builder/register_file.h"

namespace torpor::emulator {

// Computes the addresses named by PTX operands. Not thread-safe, as all builders.
class AddressBuilder {
 public:
  using Value = llvm::Value;

  AddressBuilder(LaneBuilder& code, ContextBuilder& context, const FunctionSource& source,
                 RegisterFile& registers, LocalStack& stack, FirstError& error);

  // The state space of the operand's variable; without a variable, the instruction's.
  ptx::Space SpaceOf(const ptx::Instruction& instruction, const ptx::Operand& operand) const;
  // Address without value, and an error, for variables whose address a kernel may not take.
  Address Of(const ptx::Operand& operand, ptx::Space space);
  Address Advanced(Address address, std::uint64_t bytes);
  // `value` of 32 lanes.
  Value* LaneAddresses(const Address& address);
  // Pointers to `value`, an address or 32, with space and offset of `address`.
  Value* Pointer(const Address& address, Value* value);

  // Address of the first lane of a row of the block, and the values of all such lanes.
  Address RowOf(const Address& address, unsigned row);
  Value* RowStarts(const Address& address);

 private:
  Address OfVariable(const ptx::Operand& operand, ptx::Space space);
  Address LocalVariable(const ptx::Variable& variable, std::uint32_t symbol);
  Address ParameterVariable(const ptx::Variable& variable, std::uint32_t symbol);

  LaneBuilder& code_;
  ContextBuilder& context_;
  const FunctionSource& source_;
  RegisterFile& registers_;
  LocalStack& stack_;
  FirstError& error_;
};

}  // namespace torpor::emulator
