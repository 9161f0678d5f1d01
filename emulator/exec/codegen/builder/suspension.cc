#include "emulator/exec/codegen/builder/suspension.h"

#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "base/units.h"
#include "emulator/ptx/dataflow.h"

namespace torpor::emulator {

using ptx::Opcode;
using ptx::Operand;
using ptx::SpecialRegister;

namespace {

// Whether a register keeps the same value for the whole life of a warp.
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

Suspension::Suspension(OperandBuilder& operands, LocalStack& stack, CodeTraits& traits,
                       Recompute recompute)
    : code_(operands.code()),
      context_(operands.context()),
      source_(operands.source()),
      registers_(operands.registers()),
      masks_(operands.masks()),
      stack_(stack),
      traits_(traits),
      recompute_(std::move(recompute)) {}

void Suspension::Keep(llvm::AllocaInst* slot) {
  if (slot != nullptr) kept_.push_back(slot);
}

void Suspension::Enter() {
  if (!source_.resumable()) {
    code_->CreateBr(masks_.entry(0));
    return;
  }
  Value* point = context_.Field(offsetof(WarpContext, resume_point), code_->getInt32Ty(), false);
  resume_points_ = code_->CreateSwitch(point, masks_.entry(0));
}

// Returns the only instruction that writes `reg`, if the code can compute the result anew anywhere,
// else null. The optimiser knows more about such a result than about a value read back.
const ptx::Instruction* Suspension::Origin(std::uint32_t reg) const {
  const Instruction* origin = source_.lanes.OnlyWrite(reg);
  const bool plain = origin != nullptr && origin->guard == ptx::kNoIndex &&
                     source_.lanes.shape(reg).linear() && origin->operands.size() == 2 &&
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
                         source_.function.HasParameter(source.symbol);
  return parameter ? origin : nullptr;
}

// Registers and masks live at the start of `block`, and registers written there before instruction
// `end`.
Suspension::WarpState Suspension::StateAt(std::uint32_t block, std::uint32_t end) const {
  WarpState state;
  ptx::BitSet registers = source_.lanes.RegistersAt(block);
  for (std::uint32_t i = source_.flow.blocks[block].first; i < end; ++i) {
    ptx::ForEachDefinition(source_.function, source_.function.instructions[i],
                           [&](std::uint32_t reg) { registers.Insert(reg); });
  }
  registers.ForEach([&](std::size_t reg) {
    const auto index = static_cast<std::uint32_t>(reg);
    const Instruction* origin = Origin(index);
    if (origin != nullptr) {
      state.origins.push_back(origin);
    } else {
      state.slots.push_back(llvm::cast<llvm::AllocaInst>(registers_.slot(index)));
    }
  });
  if (!source_.lanes.reconvergence().has_all_lanes(block)) {
    state.slots.push_back(masks_.slot(block));
  }
  state.slots.insert(state.slots.end(), kept_.begin(), kept_.end());
  source_.lanes.reconvergence().pending(block).ForEach(
      [&](std::size_t waiting) { state.slots.push_back(masks_.slot(waiting)); });
  return state;
}

// Between the slots and the memory of the warp's saved state.
void Suspension::MoveState(const WarpState& state, bool save) {
  const llvm::DataLayout& layout = code_.function().getParent()->getDataLayout();
  Value* memory = context_.Field(offsetof(WarpContext, saved_state), code_->getPtrTy());
  std::uint64_t offset = 0;
  for (llvm::AllocaInst* slot : state.slots) {
    llvm::Type* type = slot->getAllocatedType();
    const std::uint64_t bytes = layout.getTypeStoreSize(type);
    const llvm::Align align(std::min(std::bit_ceil(bytes), kSavedStateAlignment));
    offset = RoundUp(offset, align.value());
    Value* place = code_->CreateConstInBoundsGEP1_64(code_->getInt8Ty(), memory, offset);
    if (save) {
      code_->CreateAlignedStore(code_->CreateLoad(type, slot), place, align);
    } else {
      code_->CreateStore(code_->CreateAlignedLoad(type, place, align), slot);
    }
    offset += bytes;
  }
  // More than 0 bytes, as 0 means code that never waits.
  traits_.saved_bytes =
      std::max(traits_.saved_bytes, RoundUp(std::max(offset, Bytes{1}), kSavedStateAlignment));
}

// Ends a block of generated code: goes to `next` if `goes_on` (not 0), else now leaves the function
// and goes there when the warp is called again. Nothing but `state` lasts.
void Suspension::LeaveUnless(Value* goes_on, const WarpState& state, llvm::BasicBlock* next) {
  llvm::BasicBlock* leave = code_.NewBlock("leave");
  llvm::BasicBlock* resume = code_.NewBlock("resume");
  code_->CreateCondBr(code_->CreateICmpNE(goes_on, code_->getInt32(0)), next, leave);

  code_->SetInsertPoint(leave);
  const std::uint32_t point = resume_points_->getNumCases() + 1;
  MoveState(state, true);
  Value* place = context_.Place(offsetof(WarpContext, resume_point));
  code_->CreateStore(code_->getInt32(point), place);
  stack_.Close();
  code_->CreateRet(code_->getInt32(1));

  resume_points_->addCase(code_->getInt32(point), resume);
  code_->SetInsertPoint(resume);
  MoveState(state, false);
  for (const Instruction* origin : state.origins) recompute_(*origin);
  code_->CreateBr(next);
}

void Suspension::WaitUnless(Value* goes_on, const Instruction& at) {
  if (!source_.resumable()) return;
  llvm::BasicBlock* next = code_.NewBlock("resumed");
  LeaveUnless(goes_on, StateAt(masks_.block(), source_.IndexOf(at)), next);
  code_->SetInsertPoint(next);
  masks_.Reload();
}

void Suspension::WaitBefore(std::uint32_t to, Value* goes_on) {
  LeaveUnless(goes_on, StateAt(to, source_.flow.blocks[to].first), masks_.entry(to));
}

void Suspension::TakeTurns(std::uint32_t header, std::uint32_t stride) {
  constexpr std::uint32_t kIterations = 8;
  constexpr std::uint64_t kLargeStride = 1024;  // elements
  llvm::BasicBlock* turn = code_.NewBlock("turn");
  llvm::BasicBlock* step = code_.NewBlock("step");
  if (iterations_ == nullptr) iterations_ = code_.AllocateCounter();
  Value* count =
      code_->CreateAdd(code_->CreateLoad(code_->getInt32Ty(), iterations_), code_->getInt32(1));
  code_->CreateStore(count, iterations_);
  Value* length = registers_.Read(stride, true);
  Value* due = code_->CreateICmpEQ(code_->CreateAnd(count, code_->getInt32(kIterations - 1)),
                                   code_->getInt32(0));
  due = code_->CreateAnd(due, code_->CreateICmpUGE(length, Like(length, kLargeStride)));
  llvm::MDNode* unlikely =
      llvm::MDBuilder(code_->getContext()).createBranchWeights(1, kIterations * 4);
  code_->CreateCondBr(due, turn, step, unlikely);
  code_->SetInsertPoint(turn);
  WaitBefore(header, context_.Call(offsetof(RuntimeCalls, take_turns), code_->getInt32Ty(),
                                   {context_.pointer()}));
  code_->SetInsertPoint(step);
}

}  // namespace torpor::emulator
