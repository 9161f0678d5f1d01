#include "emulator/exec/codegen/function_emitter.h"

#include <algorithm>
#include <variant>

#include "emulator/exec/codegen/half_values.h"
#include "emulator/exec/codegen/opcodes.h"

namespace torpor::emulator {
namespace {

// Calls a function of the table with the right builders.
struct Dispatch {
  const ptx::Instruction& instruction;
  OperandBuilder& operands;
  MemoryAccess& memory;
  ParameterMemory& parameters;
  LocalStack& stack;
  CallBuilder& calls;
  TextureCallBuilder& textures;
  CollectiveBuilder& collectives;
  Suspension& suspension;
  FragmentMemory& fragments;

  void operator()(EmitValue emit) const { emit(operands, instruction); }
  void operator()(EmitMemory emit) const { emit(operands, memory, instruction); }
  void operator()(EmitLoadStore emit) const { emit(operands, memory, parameters, instruction); }
  void operator()(EmitStack emit) const { emit(operands, stack, instruction); }
  void operator()(EmitCalls emit) const { emit(operands, calls, instruction); }
  void operator()(EmitTextures emit) const { emit(operands, textures, instruction); }
  void operator()(EmitCollective emit) const { emit(operands, collectives, instruction); }
  void operator()(EmitWait emit) const { emit(operands, suspension, instruction); }
  void operator()(EmitFragments emit) const { emit(operands, memory, fragments, instruction); }
};

}  // namespace

FunctionEmitter::FunctionEmitter(const FunctionSource& source, llvm::Function& target,
                                 FunctionDeclarations& declarations, CodeTraits& traits,
                                 FirstError& error)
    : source_(source),
      error_(error),
      code_(target, source.row_lanes()),
      context_(code_, target.getArg(0)),
      registers_(code_, source),
      masks_(code_, context_, source, registers_),
      stack_(code_, context_),
      addresses_(code_, context_, source, registers_, stack_, error),
      operands_(code_, context_, source, registers_, masks_, addresses_, error),
      check_(code_, context_, addresses_),
      memory_(code_, addresses_, check_, traits),
      parameters_(code_, source),
      collectives_(operands_),
      ended_(code_, source.function),
      calls_(operands_, parameters_, declarations, ended_),
      textures_(operands_),
      fragments_(operands_),
      suspension_(operands_, stack_, traits,
                  [this](const ptx::Instruction& origin) { Recompute(origin); }),
      branches_(operands_, collectives_, suspension_, stack_, ended_) {}

bool FunctionEmitter::UsesLocalMemory() const {
  const auto& instructions = source_.function.instructions;
  return source_.local_stride != 0 ||
         std::any_of(instructions.begin(), instructions.end(), [](const ptx::Instruction& each) {
           return each.opcode == ptx::Opcode::kAlloca || each.opcode == ptx::Opcode::kStackrestore;
         });
}

void FunctionEmitter::Emit() {
  suspension_.Keep(collectives_.deposits());
  masks_.Start();
  if (UsesLocalMemory()) {
    stack_.Open(static_cast<std::uint64_t>(source_.local_stride) * kWarpLanes);
  }
  masks_.SelectFirst();
  parameters_.Spill(memory_, masks_.mask());
  suspension_.Enter();
  for (std::uint32_t block = 0; block < source_.flow.blocks.size(); ++block) EmitBlock(block);
}

void FunctionEmitter::EmitBlock(std::uint32_t block) {
  masks_.Begin(block);
  const ptx::BasicBlock& source = source_.flow.blocks[block];
  for (std::uint32_t i = source.first; i < source.end; ++i) {
    EmitInstruction(source_.function.instructions[i]);
    if (error_.occurred()) break;
  }
  if (const ptx::Instruction* call = branches_.CallAtEnd(block)) EmitInstruction(*call);
  branches_.End(block);
}

void FunctionEmitter::EmitInstruction(const ptx::Instruction& instruction) {
  operands_.Begin(instruction);
  if (IsHalf(instruction.type()) && EmitHalf(operands_, instruction)) return;
  const auto* const emit = FindEmit(instruction);
  if (emit == nullptr) return operands_.Unsupported(instruction);
  std::visit(Dispatch{instruction, operands_, memory_, parameters_, stack_, calls_, textures_,
                      collectives_, suspension_, fragments_},
             *emit);
}

// Called in the midst of another instruction; restores the shape.
void FunctionEmitter::Recompute(const ptx::Instruction& origin) {
  const ptx::LaneShape shape = operands_.result();
  EmitInstruction(origin);
  operands_.set_result(shape);
}

}  // namespace torpor::emulator
