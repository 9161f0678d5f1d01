// Special registers: fields of WarpContext, timers, and functions of a lane's number.
#include <cstddef>
#include <optional>

#include "emulator/exec/codegen/builder/operand_builder.h"

namespace torpor::emulator {
namespace {

using ptx::Operand;
using ptx::SpecialRegister;

struct Timer {
  std::size_t call;  // offset in RuntimeCalls
  unsigned shift;
  unsigned bits;
};

// The field of a WarpContext array for axis x, y or z.
std::size_t AxisField(std::size_t array, SpecialRegister axis, SpecialRegister x) {
  return array +
         sizeof(std::uint32_t) * (static_cast<std::size_t>(axis) - static_cast<std::size_t>(x));
}

// The 32-bit field of WarpContext for registers of the whole warp, else nullopt.
std::optional<std::size_t> WarpField(const Operand& operand) {
  using enum SpecialRegister;
  switch (operand.special) {
    case kNtidX:
    case kNtidY:
    case kNtidZ:
      return AxisField(offsetof(WarpContext, ntid), operand.special, kNtidX);
    case kCtaidX:
    case kCtaidY:
    case kCtaidZ:
      return AxisField(offsetof(WarpContext, ctaid), operand.special, kCtaidX);
    case kNctaidX:
    case kNctaidY:
    case kNctaidZ:
      return AxisField(offsetof(WarpContext, nctaid), operand.special, kNctaidX);
    case kClusteridX:
    case kClusteridY:
    case kClusteridZ:
      return AxisField(offsetof(WarpContext, clusterid), operand.special, kClusteridX);
    case kNclusteridX:
    case kNclusteridY:
    case kNclusteridZ:
      return AxisField(offsetof(WarpContext, nclusterid), operand.special, kNclusteridX);
    case kClusterCtaidX:
    case kClusterCtaidY:
    case kClusterCtaidZ:
      return AxisField(offsetof(WarpContext, cluster_ctaid), operand.special, kClusterCtaidX);
    case kClusterNctaidX:
    case kClusterNctaidY:
    case kClusterNctaidZ:
      return AxisField(offsetof(WarpContext, cluster_nctaid), operand.special, kClusterNctaidX);
    case kClusterRank:
      return offsetof(WarpContext, cluster_rank);
    case kClusterCount:
      return offsetof(WarpContext, cluster_blocks);
    case kIsExplicitCluster:
      return offsetof(WarpContext, is_explicit_cluster);
    case kWarpid:
      return offsetof(WarpContext, warp);
    case kNwarpid:
      return offsetof(WarpContext, warps);
    case kSmid:
      return offsetof(WarpContext, multiprocessor);
    case kNsmid:
      return offsetof(WarpContext, multiprocessors);
    case kDynamicSmemSize:
      return offsetof(WarpContext, dynamic_shared_bytes);
    case kTotalSmemSize:
      return offsetof(WarpContext, total_shared_bytes);
    case kReservedSmem:
      return offsetof(WarpContext, reserved_shared_offset);
    case kEnvreg:
      // cooperative_groups finds its grid workspace there, the high half first.
      if (operand.bits == 1) return offsetof(WarpContext, grid_workspace) + 4;
      if (operand.bits == 2) return offsetof(WarpContext, grid_workspace);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// The runtime's call behind a clock, and the field of the 64-bit result.
std::optional<Timer> TimerOf(SpecialRegister special) {
  constexpr std::size_t kClockCall = offsetof(RuntimeCalls, clock);
  constexpr std::size_t kGlobalCall = offsetof(RuntimeCalls, global_timer);
  switch (special) {
    case SpecialRegister::kClock:
      return Timer{kClockCall, 0, 32};
    case SpecialRegister::kClockHi:
      return Timer{kClockCall, 32, 32};
    case SpecialRegister::kClock64:
      return Timer{kClockCall, 0, 64};
    case SpecialRegister::kGlobaltimer:
      return Timer{kGlobalCall, 0, 64};
    case SpecialRegister::kGlobaltimerLo:
      return Timer{kGlobalCall, 0, 32};
    case SpecialRegister::kGlobaltimerHi:
      return Timer{kGlobalCall, 32, 32};
    default:
      return std::nullopt;
  }
}

// %lanemask_* of a lane; nullopt for other registers.
std::optional<std::uint32_t> LaneMask(SpecialRegister special, std::uint32_t lane) {
  switch (special) {
    case SpecialRegister::kLanemaskEq:
      return 1U << lane;
    case SpecialRegister::kLanemaskLe:
      return 0xffffffffU >> (31 - lane);
    case SpecialRegister::kLanemaskLt:
      return (1U << lane) - 1;
    case SpecialRegister::kLanemaskGe:
      return 0xffffffffU << lane;
    case SpecialRegister::kLanemaskGt:
      return 0xfffffffeU << lane;
    default:
      return std::nullopt;
  }
}

// Registers with the same value in every warp; 0 for registers without a meaning here (%pm, ...).
std::uint32_t ConstantOf(SpecialRegister special) {
  return special == SpecialRegister::kWarpSize ? kWarpLanes : 0;
}

}  // namespace

llvm::Value* OperandBuilder::ReadSpecial(const Operand& operand, bool scalar) {
  using enum SpecialRegister;
  switch (operand.special) {
    case kTidX:
    case kTidY:
    case kTidZ:
      return ReadThreadIndex(static_cast<unsigned>(operand.special) - static_cast<unsigned>(kTidX),
                             scalar);
    case kLaneid:
      return scalar ? code_->getInt32(0)
                    : code_.Spread(code_->getInt32(0), 1,
                                   code_.row_lanes() < kWarpLanes ? code_.row_lanes() : 0);
    case kLanemaskEq:
    case kLanemaskLe:
    case kLanemaskLt:
    case kLanemaskGe:
    case kLanemaskGt:
      return LaneMasks(operand.special);
    default: {
      Value* value = ReadUniform(operand);
      return scalar ? value : code_.Spread(value, 0);
    }
  }
}

// Registers with a single value for the whole warp.
llvm::Value* OperandBuilder::ReadUniform(const Operand& operand) {
  if (operand.special == SpecialRegister::kGridid) {
    return context_.Field(offsetof(WarpContext, grid_id), code_->getInt64Ty());
  }
  if (const auto field = WarpField(operand)) return context_.Field(*field, code_->getInt32Ty());
  if (const auto timer = TimerOf(operand.special)) {
    Value* value = context_.Call(timer->call, code_->getInt64Ty(), {});
    return code_.Resize(code_->CreateLShr(value, timer->shift), timer->bits, false);
  }
  return code_->getInt32(ConstantOf(operand.special));
}

llvm::Value* OperandBuilder::LaneMasks(SpecialRegister special) {
  std::vector<llvm::Constant*> masks;
  masks.reserve(kWarpLanes);
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    masks.push_back(code_->getInt32(*LaneMask(special, lane)));
  }
  return llvm::ConstantVector::get(masks);
}

// %tid: the first lane's value and strides if the shape of the block is known, else a vector load.
llvm::Value* OperandBuilder::ReadThreadIndex(unsigned axis, bool scalar) {
  Value* tids = context_.Field(offsetof(WarpContext, lane_tids), code_->getPtrTy());
  Value* row = code_->CreateConstInBoundsGEP1_64(code_->getInt32Ty(), tids,
                                                 std::uint64_t{axis} * kWarpLanes);
  const bool one = scalar || source_.block_shape.row_lanes != 0;
  llvm::Type* type =
      one ? static_cast<llvm::Type*>(code_->getInt32Ty()) : Lanes(code_->getInt32Ty());
  llvm::LoadInst* load = code_->CreateAlignedLoad(type, row, llvm::Align(4));
  code_.Invariant(load);
  if (IsVector(load)) return load;
  Value* first = load;
  // Lets the optimiser find what `threadIdx.x % 32` is.
  if (axis == 0 && source_.block_shape.row_lanes == kWarpLanes) {
    first = code_->CreateAnd(load, Like(load, ~std::uint64_t{kWarpLanes - 1}));
  }
  if (scalar) return first;
  return code_.Spread(first, axis == 0 ? 1 : 0,
                      axis == 1 && code_.row_lanes() < kWarpLanes ? 1 : 0);
}

}  // namespace torpor::emulator
