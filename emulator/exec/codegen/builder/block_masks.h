#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "emulator/exec/codegen/builder/context_builder.h"
#include "emulator/exec/codegen/builder/function_source.h"
#include "emulator/exec/codegen/builder/lane_builder.h"
#include "emulator/exec/codegen/builder/register_file.h"

namespace torpor::emulator {

// Tracks the lanes that wait at each block of the function, and the lanes that run the current
// instruction. A mask is a <32 x i1>.
class BlockMasks {
 public:
  using Value = llvm::Value;

  // Allocates a slot for each block's waiting lanes, and creates the LLVM blocks.
  BlockMasks(LaneBuilder& code, ContextBuilder& context, const FunctionSource& source,
             RegisterFile& registers);

  // Sends all lanes of the caller to block 0. mask() is then the lanes that wait there.
  void Start();
  void SelectFirst();
  // Builds at the start of `block` from now on.
  void Begin(std::uint32_t block);
  // Loads mask() again where the code has left the block in between.
  void Reload();

  std::uint32_t block() const { return block_; }
  // The lanes of the current block; never empty when the code runs.
  Value* mask() const { return mask_; }
  llvm::BasicBlock* entry(std::uint32_t block) const { return blocks_[block]; }
  llvm::AllocaInst* slot(std::size_t block) const { return slots_[block]; }
  Value* Waiting(std::size_t block);
  void SetWaiting(Value* mask, std::size_t block);
  // All lanes of the function that have not ended, at any block, as bits of an i32.
  Value* Live();

  // Guard of all lanes, or of lane 0. The instruction has a guard.
  Value* Guard(const ptx::Instruction& instruction);
  Value* ScalarGuard(const ptx::Instruction& instruction);
  // Mask of the current block's lanes with a true guard.
  Value* Active(const ptx::Instruction& instruction);
  // Runs `body` where some lane of `mask` is active. Costs nothing if `mask` is mask().
  void IfAny(Value* mask, const std::function<void()>& body);

 private:
  LaneBuilder& code_;
  ContextBuilder& context_;
  const FunctionSource& source_;
  RegisterFile& registers_;
  std::vector<llvm::AllocaInst*> slots_;  // by block
  std::vector<llvm::BasicBlock*> blocks_;
  Value* all_lanes_ = nullptr;  // that run the function
  std::uint32_t block_ = 0;
  Value* mask_ = nullptr;
};

}  // namespace torpor::emulator
