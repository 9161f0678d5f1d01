#pragma once

#include <llvm/IR/Function.h>

#include <cstdint>

#include "emulator/exec/codegen/builder/access_check.h"
#include "emulator/exec/codegen/builder/address_builder.h"
#include "emulator/exec/codegen/builder/block_masks.h"
#include "emulator/exec/codegen/builder/branch_builder.h"
#include "emulator/exec/codegen/builder/call_builder.h"
#include "emulator/exec/codegen/builder/collective_builder.h"
#include "emulator/exec/codegen/builder/context_builder.h"
#include "emulator/exec/codegen/builder/ended_lanes.h"
#include "emulator/exec/codegen/builder/first_error.h"
#include "emulator/exec/codegen/builder/fragment_memory.h"
#include "emulator/exec/codegen/builder/function_declarations.h"
#include "emulator/exec/codegen/builder/function_source.h"
#include "emulator/exec/codegen/builder/lane_builder.h"
#include "emulator/exec/codegen/builder/local_stack.h"
#include "emulator/exec/codegen/builder/memory_access.h"
#include "emulator/exec/codegen/builder/operand_builder.h"
#include "emulator/exec/codegen/builder/parameter_memory.h"
#include "emulator/exec/codegen/builder/register_file.h"
#include "emulator/exec/codegen/builder/suspension.h"
#include "emulator/exec/codegen/builder/texture_call_builder.h"

namespace torpor::emulator {

// Translates a PTX function, block by block and instruction by instruction (see opcodes.h). Owns
// the builders. Every value is a vector of 32 lanes, or lane 0's scalar if the analysis found the
// lanes linear. Not thread-safe.
class FunctionEmitter {
 public:
  // `source` has blocks. `target` is the function's declaration. All arguments must outlive the
  // emitter.
  FunctionEmitter(const FunctionSource& source, llvm::Function& target,
                  FunctionDeclarations& declarations, CodeTraits& traits, FirstError& error);

  // Emits the body of `target`, or sets the error. Call once.
  void Emit();

 private:
  void EmitBlock(std::uint32_t block);
  void EmitInstruction(const ptx::Instruction& instruction);
  void Recompute(const ptx::Instruction& origin);
  bool UsesLocalMemory() const;

  const FunctionSource& source_;
  FirstError& error_;
  // From here on in the order of layers; a constructor may allocate stack memory in `target`.
  LaneBuilder code_;
  ContextBuilder context_;
  RegisterFile registers_;
  BlockMasks masks_;
  LocalStack stack_;
  AddressBuilder addresses_;
  OperandBuilder operands_;
  AccessCheck check_;
  MemoryAccess memory_;
  ParameterMemory parameters_;
  CollectiveBuilder collectives_;
  EndedLanes ended_;
  CallBuilder calls_;
  TextureCallBuilder textures_;
  FragmentMemory fragments_;
  Suspension suspension_;
  BranchBuilder branches_;
};

}  // namespace torpor::emulator
