#pragma once

#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "emulator/exec/interface/warp_context.h"
#include "emulator/ptx/type.h"

namespace torpor::emulator {

// Width of a value's element in bits.
inline unsigned Bits(const llvm::Value* value) { return value->getType()->getScalarSizeInBits(); }
inline bool IsVector(const llvm::Value* value) { return value->getType()->isVectorTy(); }
// Integer constant, in all elements if `type` is a vector.
inline llvm::Value* Constant(llvm::Type* type, std::uint64_t bits) {
  return llvm::ConstantInt::get(type, bits);
}
// Integer constant of the type of `shape`.
inline llvm::Value* Like(const llvm::Value* shape, std::uint64_t bits) {
  return llvm::ConstantInt::get(shape->getType(), bits);
}
// Vector of a warp's 32 lanes.
inline llvm::Type* Lanes(llvm::Type* scalar) {
  return llvm::FixedVectorType::get(scalar, kWarpLanes);
}

// Builds the code of an LLVM function on scalars and vectors of 32 lanes: conversions between both,
// masks of lanes (<32 x i1>, or the bits of an i32), loops over lanes, and stack memory. `->` gives
// the IRBuilder. Not thread-safe; `function` must outlive the builder.
class LaneBuilder {
 public:
  using Value = llvm::Value;

  // Appends the entry block and builds there. `row_lanes` divides 32: lanes in a row of the block.
  LaneBuilder(llvm::Function& function, unsigned row_lanes);

  llvm::IRBuilder<>* operator->() { return &ir_; }
  llvm::IRBuilder<>& ir() { return ir_; }
  llvm::Function& function() { return function_; }
  unsigned row_lanes() const { return row_lanes_; }

  // LLVM's type of a scalar; kNone counts as 32 bits.
  llvm::Type* ScalarType(ptx::Type type);
  llvm::Type* IntType(unsigned bits) { return ir_.getIntNTy(bits); }

  // Bit casts; integers of 16, 32 and 64 bits become floats of the same size, others are resized.
  Value* ToInt(Value* value);
  Value* ToFloat(Value* value);
  // Truncates or extends integers.
  Value* Resize(Value* value, unsigned bits, bool is_signed);
  // 32 lanes from lane 0's value: lane (row, column) holds scalar + column * stride + row *
  // row_stride.
  Value* Spread(Value* scalar, std::int64_t stride = 0, std::int64_t row_stride = 0);
  Value* Vector(Value* value) { return IsVector(value) ? value : Spread(value); }
  // Call of an intrinsic with overloads by the type of the first argument only.
  Value* Intrinsic(llvm::Intrinsic::ID id, const std::vector<Value*>& arguments);
  // Every element `count` times, side by side.
  Value* Repeat(Value* vector, unsigned count);
  // Joins a power of two of equally long vectors.
  Value* Concatenate(std::vector<Value*> parts);
  // The lanes of one row of the block.
  Value* RowPart(Value* lanes, unsigned row);
  // Marks a load as invariant during the call of the function, and returns it.
  llvm::LoadInst* Invariant(llvm::LoadInst* load);

  Value* MaskBits(Value* mask);
  Value* BitsToMask(Value* bits);
  Value* AnyLane(Value* mask);
  static bool IsAllOnes(const Value* mask);
  Value* AllLanes();

  llvm::BasicBlock* NewBlock(const char* name);
  // Loops over the active lanes of `mask`, in ascending order; `lane` is an i32.
  void ForEachLane(Value* mask, const std::function<void(Value* lane)>& body);

  // Stack memory, allocated in the entry block; 0 leaves the alignment to LLVM.
  llvm::AllocaInst* Allocate(llvm::Type* type, unsigned alignment);
  // An i32 on the stack, 0 at the start of the function.
  llvm::AllocaInst* AllocateCounter();
  Value* LaneArray(llvm::Type* element);  // [32 x element]
  Value* Spill(Value* vector);            // a vector in a new LaneArray
  Value* LaneSlot(Value* array, llvm::Type* element, Value* lane);
  Value* Unspill(Value* array, llvm::Type* element);
  // `count` vectors of 32 lanes of `bits` each, aligned for whole cache lines.
  Value* VectorArray(unsigned bits, std::size_t count);
  Value* VectorAt(Value* array, unsigned bits, std::size_t index);

 private:
  llvm::Function& function_;
  llvm::IRBuilder<> ir_;
  unsigned row_lanes_;
  llvm::BasicBlock* entry_ = nullptr;
};

}  // namespace torpor::emulator
