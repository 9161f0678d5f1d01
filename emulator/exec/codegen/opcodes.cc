#include "emulator/exec/codegen/opcodes.h"

#include <array>
#include <cstddef>
#include <limits>
#include <optional>

namespace torpor::emulator {
namespace {

using ptx::Opcode;

struct OpcodeEntry {
  Opcode opcode;
  Emit emit;
  EmitValue emit_real = nullptr;  // for operands of f32 and f64, where that differs
};

const OpcodeEntry kOpcodes[] = {
    {Opcode::kAdd, EmitAddSub, EmitFloat},
    {Opcode::kSub, EmitAddSub, EmitFloat},
    {Opcode::kMul, EmitMul, EmitFloat},
    {Opcode::kDiv, EmitDivRem, EmitFloat},
    {Opcode::kMad, EmitMad, EmitFma},
    {Opcode::kMin, EmitMinMax, EmitFloatMinMax},
    {Opcode::kMax, EmitMinMax, EmitFloatMinMax},
    {Opcode::kAbs, EmitAbsNeg, EmitFloat},
    {Opcode::kNeg, EmitAbsNeg, EmitFloat},
    {Opcode::kFma, EmitFma},
    {Opcode::kAddc, EmitCarry},
    {Opcode::kSubc, EmitCarry},
    {Opcode::kMadc, EmitCarry},
    {Opcode::kRem, EmitDivRem},
    {Opcode::kMul24, EmitMul24},
    {Opcode::kMad24, EmitMul24},
    {Opcode::kSad, EmitSad},
    {Opcode::kDp4a, EmitDotProduct},
    {Opcode::kDp2a, EmitDotProduct},
    {Opcode::kSqrt, EmitSpecial},
    {Opcode::kRcp, EmitSpecial},
    {Opcode::kRsqrt, EmitSpecial},
    {Opcode::kSin, EmitSpecial},
    {Opcode::kCos, EmitSpecial},
    {Opcode::kEx2, EmitSpecial},
    {Opcode::kLg2, EmitSpecial},
    {Opcode::kTanh, EmitSpecial},
    {Opcode::kTestp, EmitTestProperty},
    {Opcode::kCopysign, EmitCopySign},
    {Opcode::kSetp, EmitSetp},
    {Opcode::kSet, EmitSet},
    {Opcode::kSelp, EmitSelp},
    {Opcode::kSlct, EmitSlct},
    {Opcode::kCvt, EmitCvt},
    {Opcode::kAnd, EmitLogic},
    {Opcode::kOr, EmitLogic},
    {Opcode::kXor, EmitLogic},
    {Opcode::kNot, EmitLogic},
    {Opcode::kCnot, EmitLogic},
    {Opcode::kShl, EmitShift},
    {Opcode::kShr, EmitShift},
    {Opcode::kShf, EmitFunnelShift},
    {Opcode::kLop3, EmitLop3},
    {Opcode::kPopc, EmitCount},
    {Opcode::kClz, EmitCount},
    {Opcode::kBrev, EmitCount},
    {Opcode::kBfe, EmitBitField},
    {Opcode::kBfi, EmitBitField},
    {Opcode::kBfind, EmitFindBit},
    {Opcode::kBmsk, EmitMask},
    {Opcode::kSzext, EmitSignExtend},
    {Opcode::kPrmt, EmitPermute},
    {Opcode::kFns, EmitFindNth},
    {Opcode::kVabsdiff2, EmitVideoPair},
    {Opcode::kVadd2, EmitVideoPair},
    {Opcode::kVavrg2, EmitVideoPair},
    {Opcode::kVmax2, EmitVideoPair},
    {Opcode::kVmin2, EmitVideoPair},
    {Opcode::kVset2, EmitVideoPair},
    {Opcode::kVsub2, EmitVideoPair},
    {Opcode::kVabsdiff4, EmitVideoQuad},
    {Opcode::kVadd4, EmitVideoQuad},
    {Opcode::kVavrg4, EmitVideoQuad},
    {Opcode::kVmax4, EmitVideoQuad},
    {Opcode::kVmin4, EmitVideoQuad},
    {Opcode::kVset4, EmitVideoQuad},
    {Opcode::kVsub4, EmitVideoQuad},
    {Opcode::kMov, EmitMov},
    {Opcode::kLd, EmitLoad},
    {Opcode::kLdu, EmitLoad},
    {Opcode::kSt, EmitStore},
    {Opcode::kCvta, EmitCvta},
    {Opcode::kIsspacep, EmitIsSpace},
    {Opcode::kAtom, EmitAtomic},
    {Opcode::kRed, EmitAtomic},
    {Opcode::kCp, EmitAsyncCopy},
    {Opcode::kCall, EmitCall},
    {Opcode::kAlloca, EmitAlloca},
    {Opcode::kStacksave, EmitStackSave},
    {Opcode::kStackrestore, EmitStackRestore},
    {Opcode::kMapa, EmitClusterAddress},
    {Opcode::kGetctarank, EmitClusterAddress},
    {Opcode::kCreatepolicy, EmitClusterAddress},
    {Opcode::kTex, EmitTexture},
    {Opcode::kTld4, EmitTexture},
    {Opcode::kSuld, EmitSurface},
    {Opcode::kSust, EmitSurface},
    {Opcode::kSured, EmitSurface},
    {Opcode::kTxq, EmitTextureQuery},
    {Opcode::kSuq, EmitTextureQuery},
    {Opcode::kBar, EmitBarrier},
    {Opcode::kBarrier, EmitBarrier},
    {Opcode::kShfl, EmitShuffle},
    {Opcode::kVote, EmitVote},
    {Opcode::kDeposit, EmitDeposit},
    {Opcode::kActivemask, EmitActiveMask},
    {Opcode::kMembar, EmitFence},
    {Opcode::kFence, EmitFence},
    {Opcode::kTrap, EmitTrap},
    {Opcode::kRedux, EmitReduction},
    {Opcode::kMatch, EmitMatch},
    {Opcode::kMbarrier, EmitMbarrier},
    {Opcode::kElect, EmitElect},
    {Opcode::kNanosleep, EmitNanosleep},
    {Opcode::kApplypriority, EmitNothing},
    {Opcode::kBrkpt, EmitNothing},
    {Opcode::kDiscard, EmitNothing},
    {Opcode::kGriddepcontrol, EmitNothing},
    {Opcode::kPmevent, EmitNothing},
    {Opcode::kPrefetch, EmitNothing},
    {Opcode::kPrefetchu, EmitNothing},
    {Opcode::kSetmaxnreg, EmitNothing},
    {Opcode::kWmma, EmitMatrix},
    {Opcode::kMma, EmitMatrix},
    {Opcode::kLdmatrix, EmitMatrixRows},
    {Opcode::kStmatrix, EmitMatrixRows},
    {Opcode::kMovmatrix, EmitMatrixTranspose},
};

struct OpcodeEmits {
  std::optional<Emit> emit;
  std::optional<Emit> emit_real;
};

constexpr std::size_t kOpcodeValues = std::numeric_limits<std::uint8_t>::max() + std::size_t{1};

// By opcode: kernels have up to hundreds of thousands of instructions.
std::array<OpcodeEmits, kOpcodeValues> IndexOpcodes() {
  static_assert(sizeof(Opcode) == sizeof(std::uint8_t));
  std::array<OpcodeEmits, kOpcodeValues> index;
  for (const OpcodeEntry& entry : kOpcodes) {
    OpcodeEmits& emits = index[static_cast<std::size_t>(entry.opcode)];
    emits.emit = entry.emit;
    emits.emit_real = entry.emit_real == nullptr ? entry.emit : Emit(entry.emit_real);
  }
  return index;
}

}  // namespace

void EmitNothing(OperandBuilder& /*to*/, const ptx::Instruction& /*instruction*/) {}

const Emit* FindEmit(const ptx::Instruction& instruction) {
  static const auto* const index = new auto(IndexOpcodes());
  const OpcodeEmits& emits = (*index)[static_cast<std::size_t>(instruction.opcode)];
  const std::optional<Emit>& found =
      ptx::IsFloat(instruction.type()) ? emits.emit_real : emits.emit;
  return found ? &*found : nullptr;
}

}  // namespace torpor::emulator
