#include "emulator/exec/codegen/unit.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/GlobalVariable.h>

#include <string>
#include <utility>

#include "emulator/exec/codegen/builder/function_source.h"
#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

Unit::Unit(const ptx::Module& module, std::uint32_t kernel, const KernelLayout& layout,
           const ptx::BlockShape& block_shape, llvm::LLVMContext& context)
    : module_(module),
      kernel_(kernel),
      layout_(layout),
      block_shape_(block_shape),
      llvm_module_(
          std::make_unique<llvm::Module>(std::string(module.functions[kernel].name), context)),
      declarations_(module, *llvm_module_) {}

void Unit::EmitTraits() {
  static_assert(sizeof(CodeTraits) == 2 * sizeof(std::uint64_t));
  const std::uint64_t words[] = {traits_.saved_bytes, traits_.scatters};
  llvm::Constant* value = llvm::ConstantDataArray::get(llvm_module_->getContext(), words);
  auto* const global = llvm::cast<llvm::GlobalVariable>(
      llvm_module_->getOrInsertGlobal(kTraitsSymbol, value->getType()));
  global->setInitializer(value);
  global->setConstant(true);
}

// Looks for unknown instructions first, so that the error names the earliest in the text.
void Unit::EmitFunction(std::uint32_t index) {
  const ptx::Function& function = module_.functions[index];
  for (const ptx::Instruction& instruction : function.instructions) {
    if (instruction.opcode != ptx::Opcode::kUnknown) continue;
    error_.Set("unsupported instruction '" + std::string(instruction.spelling) + "' in " +
               std::string(function.name) + ", line " + std::to_string(instruction.line) +
               " of its PTX");
    return;
  }
  llvm::Function* const target = declarations_.Of(index);
  const FunctionSource source(module_, index, layout_, block_shape_);
  if (source.flow.blocks.empty()) {
    return error_.Set(std::string(function.name) + ": too many blocks");
  }
  FunctionEmitter(source, *target, declarations_, traits_, error_).Emit();
}

std::unique_ptr<llvm::Module> Unit::Emit() {
  for (const std::uint32_t index : layout_.functions) {
    EmitFunction(index);
    if (error_.occurred()) return nullptr;
  }
  EmitTraits();
  return std::move(llvm_module_);
}

}  // namespace torpor::emulator
