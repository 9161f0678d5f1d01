#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <map>

#include "emulator/ptx/module.h"

namespace torpor::emulator {

// Adds the attributes that every function of generated code needs.
void SetTargetAttributes(llvm::Function& function);

// The LLVM functions of a module's PTX functions, declared when first asked for.
class FunctionDeclarations {
 public:
  // Both modules must outlive the object.
  FunctionDeclarations(const ptx::Module& module, llvm::Module& llvm_module)
      : module_(module), llvm_module_(llvm_module) {}

  // A kernel takes its WarpContext. Another function takes, after it, the lanes that call, and the
  // memory of its results and parameters; it returns the lanes that have ended in it.
  llvm::Function* Of(std::uint32_t index);

 private:
  const ptx::Module& module_;
  llvm::Module& llvm_module_;
  std::map<std::uint32_t, llvm::Function*> functions_;
};

}  // namespace torpor::emulator
