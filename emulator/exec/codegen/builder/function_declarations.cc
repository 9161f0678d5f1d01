#include "emulator/exec/codegen/builder/function_declarations.h"

#include <llvm/IR/DerivedTypes.h>

#include <string>
#include <vector>

#include "emulator/exec/interface/warp_context.h"

namespace torpor::emulator {

void SetTargetAttributes(llvm::Function& function) {
  function.addFnAttr(llvm::Attribute::NullPointerIsValid);
  function.addFnAttr(llvm::Attribute::NoUnwind);
  function.addFnAttr("min-legal-vector-width", "512");
  function.addFnAttr("prefer-vector-width", "512");
  // Frames of large kernels are larger than a guard page.
  function.addFnAttr("probe-stack", "inline-asm");
}

// Small device functions get an inline hint: calls go through memory otherwise.
llvm::Function* FunctionDeclarations::Of(std::uint32_t index) {
  llvm::Function*& function = functions_[index];
  if (function != nullptr) return function;
  llvm::LLVMContext& context = llvm_module_.getContext();
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  std::vector<llvm::Type*> arguments = {pointer};
  const ptx::Function& source = module_.functions[index];
  if (!source.is_kernel) {
    arguments.push_back(llvm::Type::getInt32Ty(context));
    arguments.insert(arguments.end(), source.results.size() + source.parameters.size(), pointer);
  }
  function = llvm::Function::Create(
      llvm::FunctionType::get(llvm::Type::getInt32Ty(context), arguments, false),
      source.is_kernel ? llvm::Function::ExternalLinkage : llvm::Function::InternalLinkage,
      source.is_kernel ? kEntrySymbol : std::string("f").append(std::to_string(index)),
      llvm_module_);
  SetTargetAttributes(*function);
  if (!source.is_kernel && source.instructions.size() < 60) {
    function->addFnAttr(llvm::Attribute::InlineHint);
  }
  return function;
}

}  // namespace torpor::emulator
