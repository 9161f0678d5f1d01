#include "emulator/exec/codegen/function_emitter.h"

#include <cstddef>

#include "emulator/ptx/collective.h"
#include "emulator/ptx/tile_loads.h"

namespace torpor::emulator {

using ptx::Opcode;

namespace {

std::int64_t LocalStride(const Unit& unit, std::uint32_t function) {
  const auto found = unit.layout().local_bytes.find(function);
  return found == unit.layout().local_bytes.end() ? 0 : found->second;
}

}  // namespace

FunctionEmitter::FunctionEmitter(Unit& unit, std::uint32_t index, llvm::Function* target)
    : unit_(unit),
      module_(unit.module()),
      index_(index),
      target_(target),
      b_(target->getContext()),
      local_stride_(LocalStride(unit, index)),
      function_(ptx::ConvergeCollectives(module_, index, unit.block_shape(), local_stride_)),
      flow_(ptx::BuildControlFlow(function_)),
      lanes_(module_, function_, flow_, unit.block_shape(), local_stride_),
      fragments_(ptx::PlaceFragments(function_, flow_, lanes_)),
      tile_loads_(ptx::FindTileLoads(function_, flow_)) {}

void FunctionEmitter::Emit() {
  if (flow_.blocks.empty()) return unit_.Fail(std::string(function_.name) + ": too many blocks");
  entry_ = llvm::BasicBlock::Create(b_.getContext(), "entry", target_);
  b_.SetInsertPoint(entry_);
  context_ = target_->getArg(0);
  CreateSlots();
  SpillParameters();
  EnterKernel();
  for (std::uint32_t block = 0; block < flow_.blocks.size(); ++block) EmitBlock(block);
}

void FunctionEmitter::CreateRegisterSlots() {
  std::vector<Value*> fragments;
  for (const auto& slot : fragments_.slots) {
    fragments.push_back(NewFragment(slot.bits, slot.registers));
  }
  for (std::uint32_t reg = 0; reg < function_.registers.size(); ++reg) {
    const unsigned bits = ptx::BitWidth(function_.registers[reg]);
    const auto& place = fragments_.places[reg];
    if (place.slot != ptx::kNoIndex) {
      slots_.push_back(FragmentRegister(fragments[place.slot], bits, place.index));
      continue;
    }
    llvm::Type* type = IntType(bits);
    slots_.push_back(b_.CreateAlloca(lanes_.shape(reg).linear() ? type : Lanes(type)));
  }
}

void FunctionEmitter::CreateSlots() {
  CreateRegisterSlots();
  for (std::uint32_t block = 0; block < flow_.blocks.size(); ++block) {
    mask_slots_.push_back(b_.CreateAlloca(Lanes(b_.getInt1Ty())));
    blocks_.push_back(NewBlock("block"));
  }
  CreateDepositSlot();
  ended_ = b_.CreateAlloca(b_.getInt32Ty());
  b_.CreateStore(b_.getInt32(0), ended_);
  if (!function_.is_kernel) {
    all_lanes_ = BitsToMask(target_->getArg(1));
  } else if (unit_.block_shape().whole_warps) {
    all_lanes_ = AllLanes();
  } else {
    all_lanes_ = BitsToMask(ContextField(offsetof(WarpContext, mask), b_.getInt32Ty()));
  }
  b_.CreateStore(all_lanes_, mask_slots_[0]);
  if (local_stride_ == 0 && !UsesDynamicStack()) return;
  // A frame of local memory: lane after lane, each with all of the function's variables.
  local_frame_ = ContextField(offsetof(WarpContext, local), b_.getPtrTy(), false);
  MoveLocalTop(b_.CreateConstGEP1_64(b_.getInt8Ty(), local_frame_,
                                     static_cast<std::uint64_t>(local_stride_) * kWarpLanes));
}

void FunctionEmitter::EmitBlock(std::uint32_t block) {
  block_ = block;
  b_.SetInsertPoint(blocks_[block]);
  ReloadMask();
  const ptx::Block& source = flow_.blocks[block];
  for (std::uint32_t i = source.first; i < source.end; ++i) {
    EmitInstruction(function_.instructions[i]);
    if (!unit_.error().empty()) break;
  }
  EmitTerminator(block);
}

void FunctionEmitter::EmitInstruction(const Instruction& instruction) {
  result_ = lanes_.ResultShape(instruction);
  scalar_ = result_.linear();
  const bool known = EmitArithmeticFamily(instruction) || EmitBitFamily(instruction) ||
                     EmitMemoryFamily(instruction) || EmitImageFamily(instruction) ||
                     EmitWarpFamily(instruction) || EmitMatrixFamily(instruction) ||
                     EmitVideoFamily(instruction);
  if (!known) Unsupported(instruction);
}

void FunctionEmitter::Unsupported(const Instruction& instruction, const std::string& why) {
  unit_.Fail("unsupported instruction '" + std::string(instruction.spelling) + "'" +
             (why.empty() ? "" : " (" + why + ")") + " in " + std::string(function_.name) +
             ", line " + std::to_string(instruction.line) + " of its PTX");
}

bool FunctionEmitter::Expect(const Instruction& instruction, std::size_t operands) {
  if (instruction.operands.size() >= operands && !instruction.types.empty()) return true;
  Unsupported(instruction, "operands");
  return false;
}

bool FunctionEmitter::EmitArithmeticFamily(const Instruction& instruction) {
  if (IsHalf(instruction.type()) && EmitHalf(instruction)) return true;
  const bool is_float = ptx::IsFloat(instruction.type());
  switch (instruction.opcode) {
    case Opcode::kAdd:
    case Opcode::kSub:
      return is_float ? EmitFloat(instruction) : EmitAddSub(instruction), true;
    case Opcode::kMul:
      return is_float ? EmitFloat(instruction) : EmitMul(instruction), true;
    case Opcode::kDiv:
      return is_float ? EmitFloat(instruction) : EmitDivRem(instruction), true;
    case Opcode::kMad:
      return is_float ? EmitFma(instruction) : EmitMad(instruction), true;
    case Opcode::kMin:
    case Opcode::kMax:
      return is_float ? EmitFloatMinMax(instruction) : EmitMinMax(instruction), true;
    case Opcode::kAbs:
    case Opcode::kNeg:
      return is_float ? EmitFloat(instruction) : EmitAbsNeg(instruction), true;
    case Opcode::kFma:
      return EmitFma(instruction), true;
    case Opcode::kAddc:
    case Opcode::kSubc:
    case Opcode::kMadc:
      return EmitCarry(instruction), true;
    case Opcode::kRem:
      return EmitDivRem(instruction), true;
    case Opcode::kMul24:
    case Opcode::kMad24:
      return EmitMul24(instruction), true;
    case Opcode::kSad:
      return EmitSad(instruction), true;
    case Opcode::kDp4a:
    case Opcode::kDp2a:
      return EmitDotProduct(instruction), true;
    case Opcode::kSqrt:
    case Opcode::kRcp:
    case Opcode::kRsqrt:
    case Opcode::kSin:
    case Opcode::kCos:
    case Opcode::kEx2:
    case Opcode::kLg2:
    case Opcode::kTanh:
      return EmitSpecial(instruction), true;
    case Opcode::kTestp:
      return EmitTestProperty(instruction), true;
    case Opcode::kCopysign:
      return EmitCopySign(instruction), true;
    case Opcode::kSetp:
      return EmitSetp(instruction), true;
    case Opcode::kSet:
      return EmitSet(instruction), true;
    case Opcode::kSelp:
      return EmitSelp(instruction), true;
    case Opcode::kSlct:
      return EmitSlct(instruction), true;
    case Opcode::kCvt:
      return EmitCvt(instruction), true;
    default:
      return false;
  }
}

bool FunctionEmitter::EmitMemoryFamily(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kMov:
      return EmitMov(instruction), true;
    case Opcode::kLd:
    case Opcode::kLdu:
      return EmitLoad(instruction), true;
    case Opcode::kSt:
      return EmitStore(instruction), true;
    case Opcode::kCvta:
      return EmitCvta(instruction), true;
    case Opcode::kIsspacep:
      return EmitIsSpace(instruction), true;
    case Opcode::kAtom:
    case Opcode::kRed:
      return EmitAtomic(instruction), true;
    case Opcode::kCp:
      return EmitAsyncCopy(instruction), true;
    case Opcode::kCall:
      return EmitCall(instruction), true;
    case Opcode::kAlloca:
      return EmitAlloca(instruction), true;
    case Opcode::kStacksave:
      return EmitStackSave(instruction), true;
    case Opcode::kStackrestore:
      return EmitStackRestore(instruction), true;
    case Opcode::kMapa:
    case Opcode::kGetctarank:
    case Opcode::kCreatepolicy:
      return EmitClusterAddress(instruction), true;
    default:
      return false;
  }
}

bool FunctionEmitter::EmitImageFamily(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kTex:
    case Opcode::kTld4:
      return EmitTexture(instruction), true;
    case Opcode::kSuld:
    case Opcode::kSust:
    case Opcode::kSured:
      return EmitSurface(instruction), true;
    case Opcode::kTxq:
    case Opcode::kSuq:
      return EmitImageQuery(instruction), true;
    default:
      return false;
  }
}

bool FunctionEmitter::EmitBitFamily(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
    case Opcode::kNot:
    case Opcode::kCnot:
      return EmitLogic(instruction), true;
    case Opcode::kShl:
    case Opcode::kShr:
      return EmitShift(instruction), true;
    case Opcode::kShf:
      return EmitFunnelShift(instruction), true;
    case Opcode::kLop3:
      return EmitLop3(instruction), true;
    case Opcode::kPopc:
    case Opcode::kClz:
    case Opcode::kBrev:
      return EmitCount(instruction), true;
    case Opcode::kBfe:
    case Opcode::kBfi:
      return EmitBitField(instruction), true;
    case Opcode::kBfind:
      return EmitFindBit(instruction), true;
    case Opcode::kBmsk:
      return EmitMask(instruction), true;
    case Opcode::kSzext:
      return EmitSignExtend(instruction), true;
    case Opcode::kPrmt:
      return EmitPermute(instruction), true;
    case Opcode::kFns:
      return EmitFindNth(instruction), true;
    default:
      return false;
  }
}

bool FunctionEmitter::EmitMatrixFamily(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kWmma:
    case Opcode::kMma:
      return EmitMatrix(instruction), true;
    case Opcode::kLdmatrix:
    case Opcode::kStmatrix:
      return EmitMatrixRows(instruction), true;
    case Opcode::kMovmatrix:
      return EmitMatrixTranspose(instruction), true;
    default:
      return false;
  }
}

bool FunctionEmitter::EmitWarpFamily(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kBar:
    case Opcode::kBarrier:
      return EmitBarrier(instruction), true;
    case Opcode::kShfl:
      return EmitShuffle(instruction), true;
    case Opcode::kVote:
      return EmitVote(instruction), true;
    case Opcode::kDeposit:
      return EmitDeposit(instruction), true;
    case Opcode::kActivemask:
      return EmitActiveMask(instruction), true;
    case Opcode::kMembar:
    case Opcode::kFence:
      return EmitFence(instruction), true;
    case Opcode::kTrap:
      return EmitTrap(instruction), true;
    case Opcode::kRedux:
      return EmitReduction(instruction), true;
    case Opcode::kMatch:
      return EmitMatch(instruction), true;
    case Opcode::kMbarrier:
      return EmitMbarrier(instruction), true;
    case Opcode::kElect:
      return EmitElect(instruction), true;
    case Opcode::kNanosleep:
      WaitUnless(CallRuntime(offsetof(RuntimeCalls, yield), b_.getInt32Ty(), {context_}),
                 instruction);
      return true;
    case Opcode::kApplypriority:
    case Opcode::kBrkpt:
    case Opcode::kDiscard:
    case Opcode::kGriddepcontrol:
    case Opcode::kPmevent:
    case Opcode::kPrefetch:
    case Opcode::kPrefetchu:
    case Opcode::kSetmaxnreg:
      return true;  // a hint
    default:
      return false;
  }
}

}  // namespace torpor::emulator
