#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <map>

#include "emulator/ptx/module.h"

namespace torpor::emulator {

// Adds the attributes common to all functions of generated code.
void SetTargetAttributes(llvm::Function& function);

// The LLVM functions of a module's PTX functions, declared when first asked for.
class FunctionDeclarations {
 public:
  // Both modules must outlive the object.
  FunctionDeclarations(const ptx::Module& module, llvm::Module& llvm_module)
      : module_(module), llvm_module_(llvm_module) {}

  // The parameter of a kernel is the WarpContext. Device functions take the WarpContext, the bits
  // of the calling lanes, and pointers to the memory of results and parameters, and return the bits
  // of the lanes that ended inside.
  llvm::Function* Of(std::uint32_t index);

 private:
  const ptx::Module& module_;
  llvm::Module& llvm_module_;
  std::map<std::uint32_t, llvm::Function*> functions_;
};

}  // namespace torpor::emulator
