#include "emulator/exec/codegen/builder/context_builder.h"

namespace torpor::emulator {

llvm::Value* ContextBuilder::Place(std::size_t offset) {
  return code_->CreateConstInBoundsGEP1_64(code_->getInt8Ty(), context_, offset);
}

llvm::Value* ContextBuilder::Field(std::size_t offset, llvm::Type* type, bool invariant) {
  llvm::LoadInst* load = code_->CreateLoad(type, Place(offset));
  return invariant ? code_.Invariant(load) : load;
}

llvm::Value* ContextBuilder::Call(std::size_t offset, llvm::Type* result,
                                  const std::vector<Value*>& arguments) {
  Value* calls = Field(offsetof(WarpContext, calls), code_->getPtrTy());
  Value* slot = code_->CreateConstInBoundsGEP1_64(code_->getInt8Ty(), calls, offset);
  llvm::LoadInst* callee = code_.Invariant(code_->CreateLoad(code_->getPtrTy(), slot));
  std::vector<llvm::Type*> types;
  types.reserve(arguments.size());
  for (Value* argument : arguments) types.push_back(argument->getType());
  return code_->CreateCall(llvm::FunctionType::get(result, types, false), callee, arguments);
}

}  // namespace torpor::emulator
