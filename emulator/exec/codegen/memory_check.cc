// What keeps a wild pointer inside the device: addresses in the device's window may fault, and a
// signal handler makes that an error; all others are checked before the access.
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <bit>
#include <cstddef>

#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

using ptx::Space;

namespace {

llvm::MDNode* Likely(llvm::LLVMContext& context) {
  return llvm::MDBuilder(context).createBranchWeights(1U << 20, 1);
}

}  // namespace

// Range and alignment in one comparison: rotating right by log2(bytes) moves the bits of a
// misaligned address to the top, where they exceed any limit.
llvm::Value* FunctionEmitter::InRange(Value* address, unsigned bytes, Space space) {
  const auto shift = static_cast<unsigned>(std::countr_zero(bytes));
  const auto within = [&](std::size_t begin_field, std::size_t bytes_field) {
    Value* begin = ContextField(begin_field, b_.getInt64Ty());
    Value* limit = b_.CreateLShr(ContextField(bytes_field, b_.getInt64Ty()), shift);
    if (IsVector(address)) {
      begin = Spread(begin, 0);
      limit = Spread(limit, 0);
    }
    Value* offset = b_.CreateSub(address, begin);
    if (shift != 0) {
      offset = b_.CreateIntrinsic(llvm::Intrinsic::fshr, {offset->getType()},
                                  {offset, offset, Like(offset, shift)});
    }
    return b_.CreateICmpULT(offset, limit);
  };
  if (space == Space::kLocal || space == Space::kParam) {
    return within(offsetof(WarpContext, arena_begin), offsetof(WarpContext, arena_bytes));
  }
  Value* window = within(offsetof(WarpContext, window_begin), offsetof(WarpContext, window_bytes));
  if (space != Space::kGeneric) return window;
  return b_.CreateOr(
      window, within(offsetof(WarpContext, arena_begin), offsetof(WarpContext, arena_bytes)));
}

bool FunctionEmitter::IsAlignedLinear(const Address& address, unsigned bytes) const {
  return address.linear && address.stride % std::int64_t{bytes} == 0 &&
         address.row_stride % std::int64_t{bytes} == 0;
}

void FunctionEmitter::CheckAccess(const Address& address, unsigned bytes, Value* mask) {
  if (address.space == Space::kShared) return CheckShared(address, bytes, mask);
  Value* fine = nullptr;
  if (IsAlignedLinear(address, bytes)) {
    // The lanes' least and greatest addresses.
    const unsigned width = row_lanes();
    const std::int64_t along = (width - 1) * address.stride;
    const std::int64_t across = (kWarpLanes / width - 1) * address.row_stride;
    const std::int64_t low = std::min<std::int64_t>(along, 0) + std::min<std::int64_t>(across, 0);
    const std::int64_t high = std::max<std::int64_t>(along, 0) + std::max<std::int64_t>(across, 0);
    const auto in_range = [&](std::int64_t offset) {
      Value* at =
          b_.CreateAdd(address.value, Like(address.value, static_cast<std::uint64_t>(offset)));
      return InRange(at, bytes, address.space);
    };
    fine = in_range(low);
    if (high != low) fine = b_.CreateAnd(fine, in_range(high));
  } else {
    Value* in_range = InRange(LaneAddresses(address), bytes, address.space);
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
  Value* odd = nullptr;
  if (IsAlignedLinear(address, bytes)) {
    odd = b_.CreateICmpNE(b_.CreateAnd(address.value, Like(address.value, bytes - 1)),
                          Like(address.value, 0));
  } else {
    Value* offsets = LaneAddresses(address);
    Value* each =
        b_.CreateICmpNE(b_.CreateAnd(offsets, Like(offsets, bytes - 1)), Like(offsets, 0));
    odd = AnyLane(b_.CreateAnd(mask, each));
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
