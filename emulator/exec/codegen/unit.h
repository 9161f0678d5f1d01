#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <memory>
#include <string>

#include "emulator/exec/codegen/builder/first_error.h"
#include "emulator/exec/codegen/builder/function_declarations.h"
#include "emulator/exec/codegen/builder/kernel_layout.h"
#include "emulator/exec/interface/warp_context.h"
#include "emulator/ptx/lane_analysis.h"
#include "emulator/ptx/module.h"

namespace torpor::emulator {

// A kernel and all functions called, translated to an LLVM module. Not thread-safe; `module`,
// `layout` and `context` must outlive the unit.
class Unit {
 public:
  Unit(const ptx::Module& module, std::uint32_t kernel, const KernelLayout& layout,
       const ptx::BlockShape& block_shape, llvm::LLVMContext& context);

  // The module, or null and `error` is set.
  std::unique_ptr<llvm::Module> Emit();
  const std::string& error() const { return error_.message(); }
  llvm::Module& llvm_module() { return *llvm_module_; }

 private:
  void EmitFunction(std::uint32_t index);
  void EmitTraits();

  const ptx::Module& module_;
  std::uint32_t kernel_;
  const KernelLayout& layout_;
  ptx::BlockShape block_shape_;
  std::unique_ptr<llvm::Module> llvm_module_;
  FunctionDeclarations declarations_;
  CodeTraits traits_;
  FirstError error_;
};

}  // namespace torpor::emulator
