#include "emulator/exec/jit/jit.h"

#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <string>

namespace torpor::emulator {
namespace {

using llvm::orc::ExecutorAddr;
using llvm::orc::ExecutorSymbolDef;
using llvm::orc::JITDylib;

// One linker for the process, never destroyed: code may run until the process ends.
llvm::orc::LLJIT* Linker() {
  static llvm::orc::LLJIT* const linker = []() -> llvm::orc::LLJIT* {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto created = llvm::orc::LLJITBuilder().create();
    if (created) return created->release();
    llvm::consumeError(created.takeError());
    return nullptr;
  }();
  return linker;
}

// Functions that LLVM calls for operations missing in the processor. Named here because dlsym may
// not see libm in a process that opened us with RTLD_LOCAL.
llvm::orc::SymbolMap MathSymbols(llvm::orc::LLJIT& linker) {
  llvm::orc::SymbolMap symbols;
  const auto add = [&](const char* name, auto* function) {
    symbols[linker.mangleAndIntern(name)] =
        ExecutorSymbolDef(ExecutorAddr::fromPtr(function), llvm::JITSymbolFlags::Exported);
  };
  using Real = float (*)(float);
  using Double = double (*)(double);
  add("truncf", static_cast<Real>(&std::trunc));
  add("floorf", static_cast<Real>(&std::floor));
  add("ceilf", static_cast<Real>(&std::ceil));
  add("trunc", static_cast<Double>(&std::trunc));
  add("floor", static_cast<Double>(&std::floor));
  add("ceil", static_cast<Double>(&std::ceil));
  add("fmaf", static_cast<float (*)(float, float, float)>(&std::fma));
  add("fma", static_cast<double (*)(double, double, double)>(&std::fma));
  add("memcpy", &std::memcpy);
  add("memset", &std::memset);
  add("memmove", &std::memmove);
  return symbols;
}

class LinkedCode : public LoadedCode {
 public:
  LinkedCode(JITDylib& library, const KernelCode& code) : library_(library), code_(code) {}
  ~LinkedCode() override {
    llvm::consumeError(Linker()->getExecutionSession().removeJITDylib(library_));
  }
  const KernelCode& code() const override { return code_; }

 private:
  JITDylib& library_;
  KernelCode code_;
};

Failure<ExecError> Damaged(llvm::Error error) {
  return {ExecError::kInvalidPtx, "cannot link a kernel: " + llvm::toString(std::move(error))};
}

}  // namespace

ExecResult<std::unique_ptr<LoadedCode>> LoadObject(const std::vector<char>& object) {
  llvm::orc::LLJIT* const linker = Linker();
  if (linker == nullptr) {
    return Failure<ExecError>{ExecError::kUnsupported, "LLVM's linker does not start"};
  }
  static std::atomic<std::uint64_t> next_name = 0;
  auto created = linker->createJITDylib("kernel" + std::to_string(next_name++));
  if (!created) return Damaged(created.takeError());
  JITDylib& library = *created;
  auto discard = [&](llvm::Error error) {
    llvm::consumeError(linker->getExecutionSession().removeJITDylib(library));
    return Damaged(std::move(error));
  };
  if (auto error = library.define(llvm::orc::absoluteSymbols(MathSymbols(*linker)))) {
    return discard(std::move(error));
  }
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      linker->getDataLayout().getGlobalPrefix());
  if (!process) return discard(process.takeError());
  library.addGenerator(std::move(*process));
  auto buffer =
      llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object.data(), object.size()), "kernel");
  if (auto error = linker->addObjectFile(library, std::move(buffer))) {
    return discard(std::move(error));
  }
  auto entry = linker->lookup(library, kEntrySymbol);
  if (!entry) return discard(entry.takeError());
  auto traits = linker->lookup(library, kTraitsSymbol);
  if (!traits) return discard(traits.takeError());
  const KernelCode code = {entry->toPtr<KernelEntry>(), *traits->toPtr<const CodeTraits*>()};
  return std::unique_ptr<LoadedCode>(std::make_unique<LinkedCode>(library, code));
}

}  // namespace torpor::emulator
