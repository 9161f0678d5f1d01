#include "tests/emulator/exec/codegen/builder/generated_function.h"

#include <gtest/gtest.h>
#include <llvm/ExecutionEngine/Orc/ThreadSafeModule.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>

#include <string>
#include <utility>

namespace torpor::emulator {

GeneratedFunction::GeneratedFunction()
    : context_(std::make_unique<llvm::LLVMContext>()),
      module_(std::make_unique<llvm::Module>("test", *context_)) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto created = llvm::orc::LLJITBuilder().create();
  if (created) {
    jit_ = std::move(*created);
    module_->setDataLayout(jit_->getDataLayout());
  } else {
    ADD_FAILURE() << llvm::toString(created.takeError());
  }
  llvm::Type* const pointer = llvm::PointerType::get(*context_, 0);
  function_ = llvm::Function::Create(
      llvm::FunctionType::get(llvm::Type::getInt32Ty(*context_), {pointer}, false),
      llvm::Function::ExternalLinkage, "generated", *module_);
}

bool GeneratedFunction::Compile() {
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (jit_ == nullptr || llvm::verifyModule(*module_, &stream)) {
    ADD_FAILURE() << problem;
    return false;
  }
  if (auto error =
          jit_->addIRModule(llvm::orc::ThreadSafeModule(std::move(module_), std::move(context_)))) {
    ADD_FAILURE() << llvm::toString(std::move(error));
    return false;
  }
  auto found = jit_->lookup("generated");
  if (!found) {
    ADD_FAILURE() << llvm::toString(found.takeError());
    return false;
  }
  entry_ = found->toPtr<std::uint32_t (*)(void*)>();
  return true;
}

std::uint32_t GeneratedFunction::Run(void* argument) {
  if (entry_ == nullptr && !Compile()) return ~0U;
  return entry_(argument);
}

}  // namespace torpor::emulator
