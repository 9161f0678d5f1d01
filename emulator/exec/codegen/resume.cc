// Where a warp of resumable code may have to wait: it saves what it still needs, returns, and goes
// on there when it is called again (see KernelEntry).
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "base/units.h"
#include "emulator/exec/codegen/function_emitter.h"
#include "emulator/ptx/dataflow.h"
#include "emulator/ptx/strided_loop.h"

namespace torpor::emulator {

using ptx::Opcode;
using ptx::SpecialRegister;

namespace {

// Has one value for the whole life of a warp.
bool IsConstantOfWarp(SpecialRegister special) {
  switch (special) {
    case SpecialRegister::kTidX:
    case SpecialRegister::kTidY:
    case SpecialRegister::kTidZ:
    case SpecialRegister::kNtidX:
    case SpecialRegister::kNtidY:
    case SpecialRegister::kNtidZ:
    case SpecialRegister::kCtaidX:
    case SpecialRegister::kCtaidY:
    case SpecialRegister::kCtaidZ:
    case SpecialRegister::kNctaidX:
    case SpecialRegister::kNctaidY:
    case SpecialRegister::kNctaidZ:
    case SpecialRegister::kLaneid:
      return true;
    default:
      return false;
  }
}

}  // namespace

void FunctionEmitter::EnterKernel() {
  if (!resumable()) {
    b_.CreateBr(blocks_[0]);
    return;
  }
  Value* point = ContextField(offsetof(WarpContext, resume_point), b_.getInt32Ty(), false);
  resume_points_ = b_.CreateSwitch(point, blocks_[0]);
}

// The instruction that alone writes `reg` and can be computed anew anywhere: the optimiser knows
// more of its result than of what it would read back. Null if there is none.
const ptx::Instruction* FunctionEmitter::Origin(std::uint32_t reg) const {
  const Instruction* origin = lanes_.OnlyWrite(reg);
  const bool plain = origin != nullptr && origin->guard == ptx::kNoIndex &&
                     lanes_.shape(reg).linear() && origin->operands.size() == 2 &&
                     origin->operands[0].kind == Operand::Kind::kRegister;
  if (!plain) return nullptr;
  const Operand& source = origin->operands[1];
  if (origin->opcode == Opcode::kMov) {
    const bool known = source.kind == Operand::Kind::kInteger ||
                       source.kind == Operand::Kind::kFloat ||
                       (source.kind == Operand::Kind::kSpecial && IsConstantOfWarp(source.special));
    return known ? origin : nullptr;
  }
  const bool parameter = origin->opcode == Opcode::kLd && source.symbol != ptx::kNoIndex &&
                         function_.HasParameter(source.symbol);
  return parameter ? origin : nullptr;
}

// Registers and lanes that are alive when `block` begins, and what it has written before
// instruction `end`.
FunctionEmitter::WarpState FunctionEmitter::StateAt(std::uint32_t block, std::uint32_t end) const {
  WarpState state;
  ptx::BitSet registers = lanes_.RegistersAt(block);
  for (std::uint32_t i = flow_.blocks[block].first; i < end; ++i) {
    ptx::ForEachDefinition(function_, function_.instructions[i],
                           [&](std::uint32_t reg) { registers.Insert(reg); });
  }
  registers.ForEach([&](std::size_t reg) {
    const auto index = static_cast<std::uint32_t>(reg);
    const Instruction* origin = Origin(index);
    if (origin != nullptr) {
      state.origins.push_back(origin);
    } else {
      state.slots.push_back(llvm::cast<llvm::AllocaInst>(slots_[reg]));
    }
  });
  if (!lanes_.reconvergence().has_all_lanes(block)) {
    state.slots.push_back(llvm::cast<llvm::AllocaInst>(mask_slots_[block]));
  }
  if (deposits_ != nullptr) state.slots.push_back(deposits_);
  lanes_.reconvergence().pending(block).ForEach([&](std::size_t waiting) {
    state.slots.push_back(llvm::cast<llvm::AllocaInst>(mask_slots_[waiting]));
  });
  return state;
}

// Between the slots and the memory of the warp's saved state.
void FunctionEmitter::MoveState(const WarpState& state, bool save) {
  const llvm::DataLayout& layout = unit_.llvm_module().getDataLayout();
  Value* memory = ContextField(offsetof(WarpContext, saved_state), b_.getPtrTy());
  std::uint64_t offset = 0;
  for (llvm::AllocaInst* slot : state.slots) {
    llvm::Type* type = slot->getAllocatedType();
    const std::uint64_t bytes = layout.getTypeStoreSize(type);
    const llvm::Align align(std::min(std::bit_ceil(bytes), kSavedStateAlignment));
    offset = RoundUp(offset, align.value());
    Value* place = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), memory, offset);
    if (save) {
      b_.CreateAlignedStore(b_.CreateLoad(type, slot), place, align);
    } else {
      b_.CreateStore(b_.CreateAlignedLoad(type, place, align), slot);
    }
    offset += bytes;
  }
  // Code that waits anywhere has some.
  unit_.RequireSavedBytes(std::max(offset, Bytes{1}));
}

// Ends a block of generated code: goes to `next` if `goes_on` (not 0), else now leaves the function
// and goes there when the warp is called again. Nothing but `state` lasts.
void FunctionEmitter::LeaveUnless(Value* goes_on, const WarpState& state, llvm::BasicBlock* next) {
  llvm::BasicBlock* leave = NewBlock("leave");
  llvm::BasicBlock* resume = NewBlock("resume");
  b_.CreateCondBr(b_.CreateICmpNE(goes_on, b_.getInt32(0)), next, leave);

  b_.SetInsertPoint(leave);
  const std::uint32_t point = resume_points_->getNumCases() + 1;
  MoveState(state, true);
  Value* place =
      b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), context_, offsetof(WarpContext, resume_point));
  b_.CreateStore(b_.getInt32(point), place);
  if (local_frame_ != nullptr) b_.CreateStore(local_frame_, LocalTop());
  b_.CreateRet(b_.getInt32(1));

  resume_points_->addCase(b_.getInt32(point), resume);
  b_.SetInsertPoint(resume);
  MoveState(state, false);
  const auto [scalar, result] = std::pair(scalar_, result_);
  for (const Instruction* origin : state.origins) EmitInstruction(*origin);
  scalar_ = scalar;
  result_ = result;
  b_.CreateBr(next);
}

// Waits in the midst of the current block, before its instruction `at`, which is the one that
// waits.
void FunctionEmitter::WaitUnless(Value* goes_on, const Instruction& at) {
  if (!resumable()) return;
  llvm::BasicBlock* next = NewBlock("resumed");
  LeaveUnless(goes_on, StateAt(block_, IndexOf(at)), next);
  b_.SetInsertPoint(next);
  ReloadMask();
}

// Waits on the way to block `to`.
void FunctionEmitter::WaitBefore(std::uint32_t to, Value* goes_on) {
  LeaveUnless(goes_on, StateAt(to, flow_.blocks[to].first), blocks_[to]);
}

// Warps that walk through memory with large steps, side by side, share pages and what the processor
// fetches ahead only if they walk together: every few iterations each lets the others follow.
void FunctionEmitter::TakeTurns(std::uint32_t header, std::uint32_t stride) {
  constexpr std::uint32_t kIterations = 8;
  constexpr std::uint64_t kLargeStride = 1024;  // elements
  llvm::BasicBlock* turn = NewBlock("turn");
  llvm::BasicBlock* step = NewBlock("step");
  if (iterations_ == nullptr) {
    llvm::IRBuilder<> entry(entry_, entry_->begin());
    iterations_ = entry.CreateAlloca(b_.getInt32Ty());
    entry.CreateStore(b_.getInt32(0), iterations_);
  }
  Value* count = b_.CreateAdd(b_.CreateLoad(b_.getInt32Ty(), iterations_), b_.getInt32(1));
  b_.CreateStore(count, iterations_);
  Value* length = ReadRegister(stride, true);
  Value* due = b_.CreateICmpEQ(b_.CreateAnd(count, b_.getInt32(kIterations - 1)), b_.getInt32(0));
  due = b_.CreateAnd(due, b_.CreateICmpUGE(length, Like(length, kLargeStride)));
  llvm::MDNode* unlikely = llvm::MDBuilder(b_.getContext()).createBranchWeights(1, kIterations * 4);
  b_.CreateCondBr(due, turn, step, unlikely);
  b_.SetInsertPoint(turn);
  WaitBefore(header, CallRuntime(offsetof(RuntimeCalls, take_turns), b_.getInt32Ty(), {context_}));
  b_.SetInsertPoint(step);
}

}  // namespace torpor::emulator
