#include "emulator/exec/codegen/builder/access_check.h"

#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

namespace torpor::emulator {

using ptx::Space;

namespace {

llvm::MDNode* Likely(llvm::LLVMContext& context) {
  return llvm::MDBuilder(context).createBranchWeights(1U << 20, 1);
}

}  // namespace

// Whether all `addresses`, of lanes or of whole rows, are aligned and inside a range open to
// `space`. A single comparison covers range and alignment: rotating right by log2(bytes) moves the
// low bits of a misaligned address to the top, so that the offset exceeds any limit.
llvm::Value* AccessCheck::InOneRange(const std::vector<Value*>& addresses, unsigned bytes,
                                     Space space) {
  const auto shift = static_cast<unsigned>(std::countr_zero(bytes));
  const auto within = [&](std::size_t begin_field, std::size_t bytes_field) {
    Value* begin = context_.Field(begin_field, code_->getInt64Ty());
    Value* limit = code_->CreateLShr(context_.Field(bytes_field, code_->getInt64Ty()), shift);
    if (auto* type = llvm::dyn_cast<llvm::FixedVectorType>(addresses[0]->getType())) {
      begin = code_->CreateVectorSplat(type->getNumElements(), begin);
      limit = code_->CreateVectorSplat(type->getNumElements(), limit);
    }
    Value* fine = nullptr;
    for (Value* address : addresses) {
      Value* offset = code_->CreateSub(address, begin);
      if (shift != 0) {
        offset = code_->CreateIntrinsic(llvm::Intrinsic::fshr, {offset->getType()},
                                        {offset, offset, Like(offset, shift)});
      }
      Value* below = code_->CreateICmpULT(offset, limit);
      fine = fine == nullptr ? below : code_->CreateAnd(fine, below);
    }
    return fine;
  };
  const auto in_window = [&] {
    return within(offsetof(WarpContext, window_begin), offsetof(WarpContext, window_bytes));
  };
  const auto in_arena = [&] {
    return within(offsetof(WarpContext, arena_begin), offsetof(WarpContext, arena_bytes));
  };
  if (space == Space::kLocal || space == Space::kParam) return in_arena();
  if (space != Space::kGeneric) return in_window();
  Value* window = in_window();
  return code_->CreateOr(window, in_arena());
}

// Whether no lane's address comes round, so that all lie between the lowest and the highest.
bool AccessCheck::IsMonotone(const LaneAddress& address) {
  constexpr std::int64_t kMaxStep = std::int64_t{1} << 40;
  const auto is_short = [](std::int64_t step) { return step >= -kMaxStep && step <= kMaxStep; };
  return is_short(address.shape.stride) && is_short(address.shape.row_stride);
}

bool AccessCheck::IsAlignedStepped(const LaneAddress& address, unsigned bytes) {
  return address.shape.stepped() && address.shape.stride % std::int64_t{bytes} == 0 &&
         address.shape.row_stride % std::int64_t{bytes} == 0;
}

// Looks only at the lowest and the highest address of the lanes, or of each row.
llvm::Value* AccessCheck::SteppedInRange(const LaneAddress& address, unsigned bytes) {
  const unsigned width = code_.row_lanes();
  const std::int64_t along = (width - 1) * address.shape.stride;
  const std::int64_t across = (kWarpLanes / width - 1) * address.shape.row_stride;
  const std::int64_t low = std::min<std::int64_t>(along, 0) + std::min<std::int64_t>(across, 0);
  const std::int64_t high = std::max<std::int64_t>(along, 0) + std::max<std::int64_t>(across, 0);
  Value* start = address.linear() ? address.value : addresses_.RowStarts(address);
  const auto at = [&](std::int64_t offset) {
    return code_->CreateAdd(start, Like(start, static_cast<std::uint64_t>(offset)));
  };
  std::vector<Value*> ends = {at(low)};
  if (high != low) ends.push_back(at(high));
  Value* fine = InOneRange(ends, bytes, address.space);
  return address.linear() ? fine : code_->CreateAndReduce(fine);
}

// Branches to a call of the runtime if the inline comparison fails. The runtime knows registered
// host memory, too, and returns if the access is legal.
void AccessCheck::Check(const LaneAddress& address, unsigned bytes, Value* mask) {
  if (address.space == Space::kShared) return CheckShared(address, bytes, mask);
  Value* fine = nullptr;
  if (IsAlignedStepped(address, bytes) && IsMonotone(address)) {
    fine = SteppedInRange(address, bytes);
  } else {
    Value* in_range = InOneRange({addresses_.LaneAddresses(address)}, bytes, address.space);
    fine = code_->CreateNot(code_.AnyLane(code_->CreateAnd(mask, code_->CreateNot(in_range))));
  }
  llvm::BasicBlock* suspicious = code_.NewBlock("suspicious");
  llvm::BasicBlock* checked = code_.NewBlock("checked");
  code_->CreateCondBr(fine, checked, suspicious, Likely(code_->getContext()));
  code_->SetInsertPoint(suspicious);
  Value* addresses = code_.Spill(addresses_.LaneAddresses(address));
  context_.Call(offsetof(RuntimeCalls, check_access), code_->getVoidTy(),
                {context_.pointer(), code_.MaskBits(mask), addresses, code_->getInt32(bytes)});
  code_->CreateBr(checked);
  code_->SetInsertPoint(checked);
}

// Any 32-bit offset lies in the block's buffer or in the guard pages around it.
void AccessCheck::CheckShared(const LaneAddress& address, unsigned bytes, Value* mask) {
  if (bytes == 1) return;
  const auto is_odd = [&](Value* offset) {
    // Without an aligned offset in the sum, all accesses from the same base share one check.
    if (address.offset % std::int64_t{bytes} != 0) {
      offset = code_->CreateAdd(offset, Like(offset, static_cast<std::uint64_t>(address.offset)));
    }
    return code_->CreateICmpNE(code_->CreateAnd(offset, Like(offset, bytes - 1)), Like(offset, 0));
  };
  Value* odd = nullptr;
  if (address.linear() && IsAlignedStepped(address, bytes)) {
    odd = is_odd(address.value);
  } else {
    odd = code_.AnyLane(code_->CreateAnd(mask, is_odd(addresses_.LaneAddresses(address))));
  }
  llvm::BasicBlock* misaligned = code_.NewBlock("misaligned");
  llvm::BasicBlock* checked = code_.NewBlock("checked");
  llvm::MDNode* unlikely = llvm::MDBuilder(code_->getContext()).createBranchWeights(1, 1U << 20);
  code_->CreateCondBr(odd, misaligned, checked, unlikely);
  code_->SetInsertPoint(misaligned);
  context_.Call(offsetof(RuntimeCalls, misaligned_shared), code_->getVoidTy(),
                {context_.pointer(), code_.MaskBits(mask)});
  code_->CreateUnreachable();
  code_->SetInsertPoint(checked);
}

}  // namespace torpor::emulator
