#pragma once

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <memory>

namespace torpor::emulator {

// `i32 generated(ptr)`, which a test builds and then runs on this machine.
class GeneratedFunction {
 public:
  GeneratedFunction();

  llvm::Function& function() { return *function_; }
  llvm::Module& module() { return *module_; }

  // Compiles the function at the first call; nothing may be built after that. Code that LLVM's
  // verifier refuses fails the test and returns ~0.
  std::uint32_t Run(void* argument);

 private:
  bool Compile();

  std::unique_ptr<llvm::LLVMContext> context_;
  std::unique_ptr<llvm::Module> module_;
  llvm::Function* function_ = nullptr;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::uint32_t (*entry_)(void*) = nullptr;
};

}  // namespace torpor::emulator
