#pragma once

#include <cstdint>
#include <string>

#include "emulator/exec/codegen/builder/address_builder.h"
#include "emulator/exec/codegen/builder/block_masks.h"
#include "emulator/exec/codegen/builder/context_builder.h"
#include "emulator/exec/codegen/builder/first_error.h"
#include "emulator/exec/codegen/builder/function_source.h"
#include "emulator/exec/codegen/builder/lane_builder.h"
#include "emulator/exec/codegen/builder/register_file.h"

namespace torpor::emulator {

// Reads and writes the operands of PTX instructions, for functions that translate instructions.
// Begin names the current instruction. If the analysis found that all lanes of the result follow
// from lane 0, scalar() holds, and only lane 0 is computed.
class OperandBuilder {
 public:
  using Value = llvm::Value;
  using Operand = ptx::Operand;
  using Instruction = ptx::Instruction;

  OperandBuilder(LaneBuilder& code, ContextBuilder& context, const FunctionSource& source,
                 RegisterFile& registers, BlockMasks& masks, AddressBuilder& addresses,
                 FirstError& error);

  LaneBuilder& code() { return code_; }
  ContextBuilder& context() { return context_; }
  const FunctionSource& source() const { return source_; }
  RegisterFile& registers() { return registers_; }
  BlockMasks& masks() { return masks_; }

  void Begin(const Instruction& instruction) { result_ = source_.lanes.ResultShape(instruction); }
  // Shape of the current instruction's result; set_result restores a shape replaced by Begin.
  const ptx::LaneShape& result() const { return result_; }
  void set_result(const ptx::LaneShape& shape) { result_ = shape; }
  bool scalar() const { return result_.linear(); }
  // `scalar` or 32 lanes of it, as scalar() says.
  llvm::Type* Shaped(llvm::Type* type) { return scalar() ? type : Lanes(type); }

  // The operand as `type`; Read chooses between lane 0 and 32 lanes by scalar(). Returns poison and
  // sets the error for operands without value.
  Value* Read(const Operand& operand, ptx::Type type) { return ReadAny(operand, type, scalar()); }
  Value* ReadScalar(const Operand& operand, ptx::Type type) { return ReadAny(operand, type, true); }
  Value* ReadVector(const Operand& operand, ptx::Type type) {
    return ReadAny(operand, type, false);
  }
  Value* ReadAny(const Operand& operand, ptx::Type type, bool scalar);

  // Writes where the lane runs and the instruction's guard holds. A scalar `value` is lane 0's;
  // result() then tells the other lanes'.
  void Write(const Instruction& instruction, const Operand& destination, Value* value,
             ptx::Type type);
  void WriteRegister(const Instruction& instruction, std::uint32_t reg, Value* value);

  // False, and an error, if the instruction has fewer operands or no type.
  bool Expect(const Instruction& instruction, std::size_t operands);
  void Unsupported(const Instruction& instruction, const std::string& why = "");
  FirstError& error() { return error_; }

 private:
  Value* Immediate(const Operand& operand, ptx::Type type);
  Value* ReadSymbol(const Operand& operand, bool scalar);
  Value* ReadSpecial(const Operand& operand, bool scalar);
  Value* ReadUniform(const Operand& operand);
  Value* LaneMasks(ptx::SpecialRegister special);
  Value* ReadThreadIndex(unsigned axis, bool scalar);

  LaneBuilder& code_;
  ContextBuilder& context_;
  const FunctionSource& source_;
  RegisterFile& registers_;
  BlockMasks& masks_;
  AddressBuilder& addresses_;
  FirstError& error_;
  ptx::LaneShape result_;
};

}  // namespace torpor::emulator
