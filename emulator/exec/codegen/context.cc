// Fields of WarpContext, special registers, and calls of the runtime.
#include <cstddef>

#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

using ptx::SpecialRegister;

llvm::Value* FunctionEmitter::ContextField(std::size_t offset, llvm::Type* type, bool invariant) {
  Value* address = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), context_, offset);
  llvm::LoadInst* load = b_.CreateLoad(type, address);
  if (invariant) {
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
  }
  return load;
}

llvm::Value* FunctionEmitter::CallRuntime(std::size_t offset, llvm::Type* result,
                                          const std::vector<Value*>& arguments) {
  Value* calls = ContextField(offsetof(WarpContext, calls), b_.getPtrTy());
  Value* slot = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), calls, offset);
  llvm::LoadInst* callee = b_.CreateLoad(b_.getPtrTy(), slot);
  callee->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
  std::vector<llvm::Type*> types;
  types.reserve(arguments.size());
  for (Value* argument : arguments) types.push_back(argument->getType());
  return b_.CreateCall(llvm::FunctionType::get(result, types, false), callee, arguments);
}

llvm::Value* FunctionEmitter::ReadSpecial(const Operand& operand, bool scalar) {
  const auto field = [&](std::size_t offset) {
    Value* value = ContextField(offset, b_.getInt32Ty());
    return scalar ? value : Spread(value, 0);
  };
  const auto constant = [&](std::uint32_t number) {
    Value* value = b_.getInt32(number);
    return scalar ? value : Spread(value, 0);
  };
  const auto timer = [&](std::size_t offset, unsigned shift, unsigned bits) {
    Value* value = CallRuntime(offset, b_.getInt64Ty(), {});
    value = Resize(b_.CreateLShr(value, shift), bits, false);
    return scalar ? value : Spread(value, 0);
  };
  const auto lane_table = [&](auto of_lane) {
    std::vector<llvm::Constant*> values;
    values.reserve(kWarpLanes);
    for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
      values.push_back(b_.getInt32(of_lane(lane)));
    }
    return llvm::ConstantVector::get(values);
  };
  const auto tid = [&](unsigned axis) -> Value* {
    Value* tids = ContextField(offsetof(WarpContext, lane_tids), b_.getPtrTy());
    Value* row =
        b_.CreateConstInBoundsGEP1_64(b_.getInt32Ty(), tids, std::uint64_t{axis} * kWarpLanes);
    const bool one = scalar || unit_.block_shape().row_lanes != 0;
    llvm::Type* type = one ? static_cast<llvm::Type*>(b_.getInt32Ty()) : Lanes(b_.getInt32Ty());
    llvm::LoadInst* load = b_.CreateAlignedLoad(type, row, llvm::Align(4));
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
    if (scalar || IsVector(load)) return load;
    return Spread(load, axis == 0 ? 1 : 0, axis == 1 && row_lanes() < kWarpLanes ? 1 : 0);
  };
  switch (operand.special) {
    case SpecialRegister::kTidX:
    case SpecialRegister::kTidY:
    case SpecialRegister::kTidZ:
      return tid(static_cast<unsigned>(operand.special) -
                 static_cast<unsigned>(SpecialRegister::kTidX));
    case SpecialRegister::kNtidX:
    case SpecialRegister::kNtidY:
    case SpecialRegister::kNtidZ:
      return field(offsetof(WarpContext, ntid) +
                   4 * (static_cast<std::size_t>(operand.special) -
                        static_cast<std::size_t>(SpecialRegister::kNtidX)));
    case SpecialRegister::kCtaidX:
    case SpecialRegister::kCtaidY:
    case SpecialRegister::kCtaidZ:
      return field(offsetof(WarpContext, ctaid) +
                   4 * (static_cast<std::size_t>(operand.special) -
                        static_cast<std::size_t>(SpecialRegister::kCtaidX)));
    case SpecialRegister::kNctaidX:
    case SpecialRegister::kNctaidY:
    case SpecialRegister::kNctaidZ:
      return field(offsetof(WarpContext, nctaid) +
                   4 * (static_cast<std::size_t>(operand.special) -
                        static_cast<std::size_t>(SpecialRegister::kNctaidX)));
    case SpecialRegister::kLaneid:
      return scalar ? b_.getInt32(0)
                    : Spread(b_.getInt32(0), 1, row_lanes() < kWarpLanes ? row_lanes() : 0);
    case SpecialRegister::kWarpid:
      return field(offsetof(WarpContext, warp));
    case SpecialRegister::kNwarpid:
      return field(offsetof(WarpContext, warps));
    case SpecialRegister::kSmid:
      return field(offsetof(WarpContext, multiprocessor));
    case SpecialRegister::kNsmid:
      return field(offsetof(WarpContext, multiprocessors));
    case SpecialRegister::kGridid: {
      Value* value = ContextField(offsetof(WarpContext, grid_id), b_.getInt64Ty());
      return scalar ? value : Spread(value, 0);
    }
    case SpecialRegister::kLanemaskEq:
      return lane_table([](std::uint32_t lane) { return 1U << lane; });
    case SpecialRegister::kLanemaskLe:
      return lane_table([](std::uint32_t lane) { return 0xffffffffU >> (31 - lane); });
    case SpecialRegister::kLanemaskLt:
      return lane_table([](std::uint32_t lane) { return (1U << lane) - 1; });
    case SpecialRegister::kLanemaskGe:
      return lane_table([](std::uint32_t lane) { return 0xffffffffU << lane; });
    case SpecialRegister::kLanemaskGt:
      return lane_table([](std::uint32_t lane) { return 0xfffffffeU << lane; });
    case SpecialRegister::kClock:
      return timer(offsetof(RuntimeCalls, clock), 0, 32);
    case SpecialRegister::kClockHi:
      return timer(offsetof(RuntimeCalls, clock), 32, 32);
    case SpecialRegister::kClock64:
      return timer(offsetof(RuntimeCalls, clock), 0, 64);
    case SpecialRegister::kGlobaltimer:
      return timer(offsetof(RuntimeCalls, global_timer), 0, 64);
    case SpecialRegister::kGlobaltimerLo:
      return timer(offsetof(RuntimeCalls, global_timer), 0, 32);
    case SpecialRegister::kGlobaltimerHi:
      return timer(offsetof(RuntimeCalls, global_timer), 32, 32);
    case SpecialRegister::kDynamicSmemSize:
      return field(offsetof(WarpContext, dynamic_shared_bytes));
    case SpecialRegister::kTotalSmemSize:
      return field(offsetof(WarpContext, total_shared_bytes));
    case SpecialRegister::kWarpSize:
      return constant(kWarpLanes);
    case SpecialRegister::kClusterCount:
      return constant(1);
    case SpecialRegister::kReservedSmem:
      return field(offsetof(WarpContext, reserved_shared_offset));
    case SpecialRegister::kEnvreg:
      // cooperative_groups finds its grid workspace there, the high half first.
      if (operand.bits == 1) return field(offsetof(WarpContext, grid_workspace) + 4);
      if (operand.bits == 2) return field(offsetof(WarpContext, grid_workspace));
      return constant(0);
    case SpecialRegister::kPm:
    case SpecialRegister::kClusterRank:
      return constant(0);
  }
  return constant(0);
}

}  // namespace torpor::emulator
