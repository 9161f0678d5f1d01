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
  LaneAddress Of(const ptx::Operand& operand, ptx::Space space);
  LaneAddress Advanced(LaneAddress address, std::uint64_t bytes);
  // `value` of 32 lanes.
  Value* LaneAddresses(const LaneAddress& address);
  // Pointers to `value`, an address or 32, with space and offset of `address`.
  Value* Pointer(const LaneAddress& address, Value* value);

  // Address of the first lane of a row of the block, and the values of all such lanes.
  LaneAddress RowOf(const LaneAddress& address, unsigned row);
  Value* RowStarts(const LaneAddress& address);

 private:
  LaneAddress OfVariable(const ptx::Operand& operand, ptx::Space space);
  LaneAddress LocalVariable(const ptx::Variable& variable, std::uint32_t symbol);
  LaneAddress ParameterVariable(const ptx::Variable& variable, std::uint32_t symbol);

  LaneBuilder& code_;
  ContextBuilder& context_;
  const FunctionSource& source_;
  RegisterFile& registers_;
  LocalStack& stack_;
  FirstError& error_;
};

}  // namespace torpor::emulator
