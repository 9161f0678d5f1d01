// What keeps a wild pointer inside the device: addresses in the device's window may fault, and a
// signal handler makes that an error; all others are checked before the access.
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

using ptx::Space;

namespace {

llvm::MDNode* Likely(llvm::LLVMContext& context) {
  return llvm::MDBuilder(context).createBranchWeights(1U << 20, 1);
}

}  // namespace

// Whether all of `addresses`, of lanes or of whole rows, are aligned and in one of the ranges that
// `space` may reach. Range and alignment are one comparison: rotating right by log2(bytes) moves
// the bits of a misaligned address to the top, where they exceed any limit.
llvm::Value* FunctionEmitter::InOneRange(const std::vector<Value*>& addresses, unsigned bytes,
                                         Space space) {
  const auto shift = static_cast<unsigned>(std::countr_zero(bytes));
  const auto within = [&](std::size_t begin_field, std::size_t bytes_field) {
    Value* begin = ContextField(begin_field, b_.getInt64Ty());
    Value* limit = b_.CreateLShr(ContextField(bytes_field, b_.getInt64Ty()), shift);
    if (auto* type = llvm::dyn_cast<llvm::FixedVectorType>(addresses[0]->getType())) {
      begin = b_.CreateVectorSplat(type->getNumElements(), begin);
      limit = b_.CreateVectorSplat(type->getNumElements(), limit);
    }
    Value* fine = nullptr;
    for (Value* address : addresses) {
      Value* offset = b_.CreateSub(address, begin);
      if (shift != 0) {
        offset = b_.CreateIntrinsic(llvm::Intrinsic::fshr, {offset->getType()},
                                    {offset, offset, Like(offset, shift)});
      }
      Value* below = b_.CreateICmpULT(offset, limit);
      fine = fine == nullptr ? below : b_.CreateAnd(fine, below);
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
  return b_.CreateOr(window, in_arena());
}

// Whether no lane's address comes round, so that all lie between the least and the greatest.
bool FunctionEmitter::IsMonotone(const Address& address) {
  constexpr std::int64_t kMaxStep = std::int64_t{1} << 40;
  const auto is_short = [](std::int64_t step) { return step >= -kMaxStep && step <= kMaxStep; };
  return is_short(address.shape.stride) && is_short(address.shape.row_stride);
}

bool FunctionEmitter::IsAlignedStepped(const Address& address, unsigned bytes) {
  return address.shape.stepped() && address.shape.stride % std::int64_t{bytes} == 0 &&
         address.shape.row_stride % std::int64_t{bytes} == 0;
}

// Looks only at the least and the greatest address of the lanes, or of each row.
llvm::Value* FunctionEmitter::SteppedInRange(const Address& address, unsigned bytes) {
  const unsigned width = row_lanes();
  const std::int64_t along = (width - 1) * address.shape.stride;
  const std::int64_t across = (kWarpLanes / width - 1) * address.shape.row_stride;
  const std::int64_t low = std::min<std::int64_t>(along, 0) + std::min<std::int64_t>(across, 0);
  const std::int64_t high = std::max<std::int64_t>(along, 0) + std::max<std::int64_t>(across, 0);
  Value* start = address.linear() ? address.value : RowStarts(address);
  const auto at = [&](std::int64_t offset) {
    return b_.CreateAdd(start, Like(start, static_cast<std::uint64_t>(offset)));
  };
  std::vector<Value*> ends = {at(low)};
  if (high != low) ends.push_back(at(high));
  Value* fine = InOneRange(ends, bytes, address.space);
  return address.linear() ? fine : b_.CreateAndReduce(fine);
}

void FunctionEmitter::CheckAccess(const Address& address, unsigned bytes, Value* mask) {
  if (address.space == Space::kShared) return CheckShared(address, bytes, mask);
  Value* fine = nullptr;
  if (IsAlignedStepped(address, bytes) && IsMonotone(address)) {
    fine = SteppedInRange(address, bytes);
  } else {
    Value* in_range = InOneRange({LaneAddresses(address)}, bytes, address.space);
    fine = b_.CreateNot(AnyLane(b_.CreateAnd(mask, b_.CreateNot(in_range))));
  }
  llvm::BasicBlock* suspicious = NewBlock("suspicious");
  llvm::BasicBlock* checked = NewBlock("checked");
  b_.CreateCondBr(fine, checked, suspicious, Likely(b_.getContext()));
  b_.SetInsertPoint(suspicious);
  Value* addresses = Spill(LaneAddresses(address));
  CallRuntime(offsetof(RuntimeCalls, check_access), b_.getVoidTy(),
              {context_, MaskBits(mask), addresses, b_.getInt32(bytes)});
  b_.CreateBr(checked);
  b_.SetInsertPoint(checked);
}

// Any 32-bit offset lies in the block's buffer or in the guard pages around it.
void FunctionEmitter::CheckShared(const Address& address, unsigned bytes, Value* mask) {
  if (bytes == 1) return;
  const auto is_odd = [&](Value* offset) {
    // An offset that is aligned by itself leaves all accesses from one base one check.
    if (address.offset % std::int64_t{bytes} != 0) {
      offset = b_.CreateAdd(offset, Like(offset, static_cast<std::uint64_t>(address.offset)));
    }
    return b_.CreateICmpNE(b_.CreateAnd(offset, Like(offset, bytes - 1)), Like(offset, 0));
  };
  Value* odd = nullptr;
  if (address.linear() && IsAlignedStepped(address, bytes)) {
    odd = is_odd(address.value);
  } else {
    odd = AnyLane(b_.CreateAnd(mask, is_odd(LaneAddresses(address))));
  }
  llvm::BasicBlock* misaligned = NewBlock("misaligned");
  llvm::BasicBlock* checked = NewBlock("checked");
  llvm::MDNode* unlikely = llvm::MDBuilder(b_.getContext()).createBranchWeights(1, 1U << 20);
  b_.CreateCondBr(odd, misaligned, checked, unlikely);
  b_.SetInsertPoint(misaligned);
  CallRuntime(offsetof(RuntimeCalls, misaligned_shared), b_.getVoidTy(),
              {context_, MaskBits(mask)});
  b_.CreateUnreachable();
  b_.SetInsertPoint(checked);
}

}  // namespace torpor::emulator
