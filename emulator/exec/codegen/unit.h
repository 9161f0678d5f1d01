#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/exec/codegen/kernel_layout.h"
#include "emulator/exec/interface/warp_context.h"
#include "emulator/ptx/lane_analysis.h"
#include "emulator/ptx/module.h"

namespace torpor::emulator {

// What every function of generated code needs.
void SetTargetAttributes(llvm::Function& function);

// One kernel and what it calls, translated to one LLVM module.
class Unit {
 public:
  Unit(const ptx::Module& module, std::uint32_t kernel, const KernelLayout& layout,
       const ptx::BlockShape& block_shape, llvm::LLVMContext& context);

  // The module, or null and `error` is set.
  std::unique_ptr<llvm::Module> Emit();
  const std::string& error() const { return error_; }

  const ptx::Module& module() const { return module_; }
  const KernelLayout& layout() const { return layout_; }
  const ptx::BlockShape& block_shape() const { return block_shape_; }
  llvm::Module& llvm_module() { return *llvm_module_; }
  // A kernel takes its WarpContext. Another function takes, after it, the lanes that call, and the
  // memory of its results and parameters; it returns the lanes that have ended in it.
  llvm::Function* FunctionOf(std::uint32_t index);
  // What a warp needs to save so many bytes where it waits.
  void RequireSavedBytes(std::uint64_t bytes);
  void SetScatters() { traits_.scatters = 1; }
  // Only the first error is kept.
  void Fail(const std::string& message);

 private:
  void EmitTraits();

  const ptx::Module& module_;
  std::uint32_t kernel_;
  const KernelLayout& layout_;
  ptx::BlockShape block_shape_;
  std::unique_ptr<llvm::Module> llvm_module_;
  std::map<std::uint32_t, llvm::Function*> functions_;
  CodeTraits traits_;
  std::string error_;
};

}  // namespace torpor::emulator
