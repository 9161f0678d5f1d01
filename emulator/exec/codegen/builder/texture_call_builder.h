#pragma once

#include <cstdint>

#include "emulator/exec/codegen/builder/operand_builder.h"
#include "emulator/exec/texture/texture_instruction.h"

namespace torpor::emulator {

// Operands and results of texture and surface instructions, carried out by the runtime lane by
// lane. All instructions of a function share a TextureLanes record on the stack.
class TextureCallBuilder {
 public:
  using Value = llvm::Value;

  explicit TextureCallBuilder(OperandBuilder& operands)
      : operands_(operands), code_(operands.code()), context_(operands.context()) {}

  // The texture or surface objects of the lanes.
  void PutHandles(const ptx::Operand& object);
  void PutInput(unsigned index, const ptx::Operand& operand);
  void PutComponent(unsigned index, const ptx::Operand& operand, ptx::Type type);
  // `call` is texture, surface or texture_query of RuntimeCalls; `instruction` its last argument.
  void Call(std::size_t call, std::uint64_t instruction, Value* mask);
  Value* TakeComponent(unsigned index, unsigned bits);

 private:
  Value* Slot(std::size_t offset);

  OperandBuilder& operands_;
  LaneBuilder& code_;
  ContextBuilder& context_;
  Value* lanes_ = nullptr;  // made with the first instruction that needs it
};

}  // namespace torpor::emulator
