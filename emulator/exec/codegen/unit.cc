#include "emulator/exec/codegen/unit.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/GlobalVariable.h>

#include <algorithm>

#include "base/units.h"
#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

void SetTargetAttributes(llvm::Function& function) {
  function.addFnAttr(llvm::Attribute::NullPointerIsValid);
  function.addFnAttr(llvm::Attribute::NoUnwind);
  function.addFnAttr("min-legal-vector-width", "512");
  function.addFnAttr("prefer-vector-width", "512");
  // Frames of large kernels are larger than a guard page.
  function.addFnAttr("probe-stack", "inline-asm");
}

Unit::Unit(const ptx::Module& module, std::uint32_t kernel, const KernelLayout& layout,
           const ptx::BlockShape& block_shape, llvm::LLVMContext& context)
    : module_(module),
      kernel_(kernel),
      layout_(layout),
      block_shape_(block_shape),
      llvm_module_(
          std::make_unique<llvm::Module>(std::string(module.functions[kernel].name), context)) {}

void Unit::RequireSavedBytes(std::uint64_t bytes) {
  traits_.saved_bytes = std::max(traits_.saved_bytes, RoundUp(bytes, kSavedStateAlignment));
}

void Unit::Fail(const std::string& message) {
  if (error_.empty()) error_ = message;
}

llvm::Function* Unit::FunctionOf(std::uint32_t index) {
  llvm::Function*& function = functions_[index];
  if (function != nullptr) return function;
  llvm::LLVMContext& context = llvm_module_->getContext();
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
      *llvm_module_);
  SetTargetAttributes(*function);
  if (!source.is_kernel && source.instructions.size() < 60) {
    function->addFnAttr(llvm::Attribute::InlineHint);
  }
  return function;
}

void Unit::EmitTraits() {
  static_assert(sizeof(CodeTraits) == 2 * sizeof(std::uint64_t));
  const std::uint64_t words[] = {traits_.saved_bytes, traits_.scatters};
  llvm::Constant* value = llvm::ConstantDataArray::get(llvm_module_->getContext(), words);
  auto* const global = llvm::cast<llvm::GlobalVariable>(
      llvm_module_->getOrInsertGlobal(kTraitsSymbol, value->getType()));
  global->setInitializer(value);
  global->setConstant(true);
}

std::unique_ptr<llvm::Module> Unit::Emit() {
  if (module_.functions[kernel_].has_clusters) {
    Fail("clusters of several blocks are not supported: .reqnctapercluster of " +
         std::string(module_.functions[kernel_].name));
    return nullptr;
  }
  for (const std::uint32_t index : layout_.functions) {
    const ptx::Function& function = module_.functions[index];
    for (const ptx::Instruction& instruction : function.instructions) {
      if (instruction.opcode != ptx::Opcode::kUnknown) continue;
      Fail("unsupported instruction '" + std::string(instruction.spelling) + "' in " +
           std::string(function.name) + ", line " + std::to_string(instruction.line) +
           " of its PTX");
    }
    if (!error_.empty()) return nullptr;
    FunctionEmitter(*this, index, FunctionOf(index)).Emit();
  }
  if (!error_.empty()) return nullptr;
  EmitTraits();
  return std::move(llvm_module_);
}

}  // namespace torpor::emulator
