// Fields of WarpContext, and calls of the runtime.
#include <cstddef>

#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

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

}  // namespace torpor::emulator
