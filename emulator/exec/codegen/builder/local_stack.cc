#include "emulator/exec/codegen/builder/local_stack.h"

#include <cstddef>

namespace torpor::emulator {

void LocalStack::Open(std::uint64_t bytes) {
  frame_ = Top(code_->getPtrTy());
  MoveTop(code_->CreateConstGEP1_64(code_->getInt8Ty(), frame_, bytes));
}

void LocalStack::Close() {
  if (frame_ != nullptr) SetTop(frame_);
}

llvm::Value* LocalStack::Top(llvm::Type* type) {
  return context_.Field(offsetof(WarpContext, local), type, false);
}

void LocalStack::SetTop(Value* top) {
  code_->CreateStore(top, context_.Place(offsetof(WarpContext, local)));
}

void LocalStack::MoveTop(Value* top) {
  Value* end = context_.Field(offsetof(WarpContext, local_end), code_->getPtrTy());
  llvm::BasicBlock* overflow = code_.NewBlock("overflow");
  llvm::BasicBlock* fits = code_.NewBlock("fits");
  code_->CreateCondBr(code_->CreateICmpUGT(top, end), overflow, fits);
  code_->SetInsertPoint(overflow);
  context_.Call(offsetof(RuntimeCalls, local_overflow), code_->getVoidTy(), {context_.pointer()});
  code_->CreateBr(fits);
  code_->SetInsertPoint(fits);
  SetTop(top);
}

}  // namespace torpor::emulator
