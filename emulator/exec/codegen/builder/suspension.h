#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "emulator/exec/codegen/builder/local_stack.h"
#include "emulator/exec/codegen/builder/operand_builder.h"
#include "emulator/exec/interface/warp_context.h"

namespace torpor::emulator {

// Places where a warp of resumable code may have to wait. The code saves the live state and
// returns, and goes on at the same place at the next call (see KernelEntry). In other code a
// waiting warp stays inside the runtime's call, and a Suspension adds no code.
class Suspension {
 public:
  using Value = llvm::Value;
  using Instruction = ptx::Instruction;
  // Translates an instruction to compute the result anew instead of saving a register.
  using Recompute = std::function<void(const Instruction&)>;

  // Notes in `traits` how many bytes a waiting warp saves.
  Suspension(OperandBuilder& operands, LocalStack& stack, CodeTraits& traits, Recompute recompute);

  // Adds `slot` to the state saved at every place. Ignores null.
  void Keep(llvm::AllocaInst* slot);
  // Ends the entry block: goes to block 0, or to where the warp left.
  void Enter();
  // Waits in the midst of the current block, before its instruction `at`, unless `goes_on` is not
  // 0.
  void WaitUnless(Value* goes_on, const Instruction& at);
  // Waits on the way to block `to`. Ends the LLVM block.
  void WaitBefore(std::uint32_t to, Value* goes_on);
  // Lets neighbouring warps follow every few iterations of the loop at `header` if the loop's step
  // (register `stride`, in elements) is large. Warps that walk through memory together share pages
  // and prefetched lines.
  void TakeTurns(std::uint32_t header, std::uint32_t stride);

 private:
  struct WarpState {
    std::vector<llvm::AllocaInst*> slots;
    std::vector<const Instruction*> origins;  // of registers that are computed anew
  };

  const Instruction* Origin(std::uint32_t reg) const;
  WarpState StateAt(std::uint32_t block, std::uint32_t end) const;
  void MoveState(const WarpState& state, bool save);
  void LeaveUnless(Value* goes_on, const WarpState& state, llvm::BasicBlock* next);

  LaneBuilder& code_;
  ContextBuilder& context_;
  const FunctionSource& source_;
  RegisterFile& registers_;
  BlockMasks& masks_;
  LocalStack& stack_;
  CodeTraits& traits_;
  const Recompute recompute_;
  std::vector<llvm::AllocaInst*> kept_;
  llvm::SwitchInst* resume_points_ = nullptr;
  Value* iterations_ = nullptr;  // slot that counts those of all strided loops
};

}  // namespace torpor::emulator
