#include "emulator/exec/codegen/builder/lane_builder.h"

namespace torpor::emulator {

LaneBuilder::LaneBuilder(llvm::Function& function, unsigned row_lanes)
    : function_(function), ir_(function.getContext()), row_lanes_(row_lanes) {
  entry_ = llvm::BasicBlock::Create(ir_.getContext(), "entry", &function_);
  ir_.SetInsertPoint(entry_);
}

llvm::Type* LaneBuilder::ScalarType(ptx::Type type) {
  switch (type) {
    case ptx::Type::kF16:
      return ir_.getHalfTy();
    case ptx::Type::kBf16:
      return ir_.getBFloatTy();
    case ptx::Type::kF32:
      return ir_.getFloatTy();
    case ptx::Type::kF64:
      return ir_.getDoubleTy();
    case ptx::Type::kNone:
      return ir_.getInt32Ty();
    default:
      return IntType(ptx::BitWidth(type));
  }
}

llvm::Value* LaneBuilder::ToInt(Value* value) {
  if (!value->getType()->isFPOrFPVectorTy()) return value;
  llvm::Type* type = IntType(Bits(value));
  return ir_.CreateBitCast(value, IsVector(value) ? Lanes(type) : type);
}

llvm::Value* LaneBuilder::ToFloat(Value* value) {
  if (value->getType()->isFPOrFPVectorTy()) return value;
  llvm::Type* type = Bits(value) == 64   ? ir_.getDoubleTy()
                     : Bits(value) == 16 ? ir_.getHalfTy()
                                         : ir_.getFloatTy();
  value = Resize(value, type->getScalarSizeInBits(), false);
  return ir_.CreateBitCast(value, IsVector(value) ? Lanes(type) : type);
}

llvm::Value* LaneBuilder::Resize(Value* value, unsigned bits, bool is_signed) {
  llvm::Type* type = IntType(bits);
  if (IsVector(value)) type = Lanes(type);
  return is_signed ? ir_.CreateSExtOrTrunc(value, type) : ir_.CreateZExtOrTrunc(value, type);
}

llvm::Value* LaneBuilder::Spread(Value* scalar, std::int64_t stride, std::int64_t row_stride) {
  Value* splat = ir_.CreateVectorSplat(kWarpLanes, scalar);
  if (stride == 0 && row_stride == 0) return splat;
  const unsigned width = row_lanes_;
  std::vector<llvm::Constant*> steps;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    const std::uint64_t step = lane % width * static_cast<std::uint64_t>(stride) +
                               lane / width * static_cast<std::uint64_t>(row_stride);
    steps.push_back(llvm::ConstantInt::get(scalar->getType(), step));
  }
  return ir_.CreateAdd(splat, llvm::ConstantVector::get(steps));
}

llvm::Value* LaneBuilder::Intrinsic(llvm::Intrinsic::ID id, const std::vector<Value*>& arguments) {
  return ir_.CreateIntrinsic(id, {arguments[0]->getType()}, arguments);
}

llvm::Value* LaneBuilder::Repeat(Value* vector, unsigned count) {
  if (count == 1) return vector;
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
  std::vector<int> indices;
  for (unsigned i = 0; i < lanes * count; ++i) indices.push_back(static_cast<int>(i / count));
  return ir_.CreateShuffleVector(vector, indices);
}

// A power of two of equally long vectors.
llvm::Value* LaneBuilder::Concatenate(std::vector<Value*> parts) {
  while (parts.size() > 1) {
    std::vector<Value*> joined;
    for (std::size_t i = 0; i < parts.size(); i += 2) {
      const auto width = llvm::cast<llvm::FixedVectorType>(parts[i]->getType())->getNumElements();
      std::vector<int> indices;
      for (unsigned k = 0; k < 2 * width; ++k) indices.push_back(static_cast<int>(k));
      joined.push_back(ir_.CreateShuffleVector(parts[i], parts[i + 1], indices));
    }
    parts = std::move(joined);
  }
  return parts[0];
}

llvm::Value* LaneBuilder::RowPart(Value* lanes, unsigned row) {
  std::vector<int> indices;
  for (unsigned i = 0; i < row_lanes_; ++i) {
    indices.push_back(static_cast<int>(row * row_lanes_ + i));
  }
  return ir_.CreateShuffleVector(lanes, indices);
}

llvm::LoadInst* LaneBuilder::Invariant(llvm::LoadInst* load) {
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(ir_.getContext(), {}));
  return load;
}

llvm::Value* LaneBuilder::MaskBits(Value* mask) {
  return ir_.CreateBitCast(mask, ir_.getInt32Ty());
}

llvm::Value* LaneBuilder::BitsToMask(Value* bits) {
  return ir_.CreateBitCast(bits, Lanes(ir_.getInt1Ty()));
}

llvm::Value* LaneBuilder::AnyLane(Value* mask) {
  return ir_.CreateICmpNE(MaskBits(mask), ir_.getInt32(0));
}

bool LaneBuilder::IsAllOnes(const Value* mask) {
  const auto* const constant = llvm::dyn_cast<llvm::Constant>(mask);
  return constant != nullptr && constant->isAllOnesValue();
}

llvm::Value* LaneBuilder::AllLanes() { return llvm::ConstantInt::getTrue(Lanes(ir_.getInt1Ty())); }

llvm::BasicBlock* LaneBuilder::NewBlock(const char* name) {
  return llvm::BasicBlock::Create(ir_.getContext(), name, &function_);
}

// The loop keeps the remaining lanes as bits, and takes the lowest bit in each round.
void LaneBuilder::ForEachLane(Value* mask, const std::function<void(Value* lane)>& body) {
  Value* all = MaskBits(mask);
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  llvm::BasicBlock* loop = NewBlock("lane");
  llvm::BasicBlock* after = NewBlock("lanes_done");
  ir_.CreateCondBr(ir_.CreateICmpNE(all, ir_.getInt32(0)), loop, after);
  ir_.SetInsertPoint(loop);
  llvm::PHINode* left = ir_.CreatePHI(ir_.getInt32Ty(), 2);
  left->addIncoming(all, before);
  body(ir_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, left, ir_.getTrue()));
  Value* rest = ir_.CreateAnd(left, ir_.CreateSub(left, ir_.getInt32(1)));
  left->addIncoming(rest, ir_.GetInsertBlock());
  ir_.CreateCondBr(ir_.CreateICmpNE(rest, ir_.getInt32(0)), loop, after);
  ir_.SetInsertPoint(after);
}

llvm::AllocaInst* LaneBuilder::Allocate(llvm::Type* type, unsigned alignment) {
  llvm::IRBuilder<> entry(entry_, entry_->begin());
  llvm::AllocaInst* memory = entry.CreateAlloca(type);
  if (alignment != 0) memory->setAlignment(llvm::Align(alignment));
  return memory;
}

llvm::AllocaInst* LaneBuilder::AllocateCounter() {
  llvm::IRBuilder<> entry(entry_, entry_->begin());
  llvm::AllocaInst* counter = entry.CreateAlloca(ir_.getInt32Ty());
  entry.CreateStore(ir_.getInt32(0), counter);
  return counter;
}

llvm::Value* LaneBuilder::LaneArray(llvm::Type* element) {
  return Allocate(llvm::ArrayType::get(element, kWarpLanes), 64);
}

llvm::Value* LaneBuilder::Spill(Value* vector) {
  Value* array = LaneArray(vector->getType()->getScalarType());
  ir_.CreateAlignedStore(vector, array, llvm::Align(64));
  return array;
}

llvm::Value* LaneBuilder::LaneSlot(Value* array, llvm::Type* element, Value* lane) {
  return ir_.CreateInBoundsGEP(element, array, ir_.CreateZExt(lane, ir_.getInt64Ty()));
}

llvm::Value* LaneBuilder::Unspill(Value* array, llvm::Type* element) {
  return ir_.CreateAlignedLoad(Lanes(element), array, llvm::Align(64));
}

llvm::Value* LaneBuilder::VectorArray(unsigned bits, std::size_t count) {
  return Allocate(llvm::ArrayType::get(Lanes(IntType(bits)), count), 256);
}

llvm::Value* LaneBuilder::VectorAt(Value* array, unsigned bits, std::size_t index) {
  return ir_.CreateConstInBoundsGEP1_64(Lanes(IntType(bits)), array, index);
}

}  // namespace torpor::emulator
