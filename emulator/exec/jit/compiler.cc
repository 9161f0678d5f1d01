#include "emulator/exec/jit/compiler.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/SubtargetFeature.h>

#include <cstdlib>
#include <memory>
#include <mutex>

#include "emulator/exec/codegen/matrix_product.h"
#include "emulator/exec/codegen/unit.h"

namespace torpor::emulator {
namespace {

// Changes whenever generated code does; part of every cache key.
constexpr char kGeneratorVersion[] = "34";

// Instructions above which code is compiled without register allocation. The time of LLVM's
// allocator grows much faster than the input, and reaches about a second here; code without
// allocation is about a fifth slower.
constexpr unsigned kMaxAllocatedInstructions = 5000;

constexpr char kPasses[] =
    "module(always-inline,cgscc(inline,function(sroa,early-cse)),globaldce),"
    "function(sroa,early-cse<memssa>,sccp,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(licm),gvn,sccp,instcombine<no-verify-fixpoint>,dse,adce,simplifycfg)";

// Instructions above which registers stay in memory. Below, a pass promotes registers, and in a
// kernel of very many blocks nearly each block then needs a phi for each register: PyTorch's
// scatter by atomic minimum (161,000 instructions before any pass, 9,858 blocks) becomes 124,000
// phis, 40 s of compilation and an object of 80 MB. Registers in memory take 2 s and 1.5 MB. The
// limit is twice the largest other kernel met in PyTorch.
constexpr unsigned kMaxPromotedInstructions = 120'000;

constexpr char kPassesWithoutPromotion[] =
    "module(always-inline,globaldce),"
    "function(early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg)";

std::string HostFeatures() {
  llvm::SubtargetFeatures features;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    features.AddFeature(feature.first(), feature.second);
  }
  return features.getString();
}

// A code generator for this processor with all features; null if LLVM has no such target.
std::unique_ptr<llvm::TargetMachine> CreateMachine() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  const std::string triple = llvm::sys::getDefaultTargetTriple();
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (target == nullptr) return nullptr;
  llvm::TargetOptions options;
  // PTX says where products and sums fuse.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, llvm::sys::getHostCPUName(), HostFeatures(), options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
}

// Runs the passes above. Returns false if LLVM lacks a pass.
bool Optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  const bool promotes = module.getInstructionCount() <= kMaxPromotedInstructions;
  llvm::ModulePassManager passes;
  if (llvm::Error error =
          builder.parsePassPipeline(passes, promotes ? kPasses : kPassesWithoutPromotion)) {
    llvm::consumeError(std::move(error));
    return false;
  }
  passes.run(module, modules);
  return true;
}

// The object file of a module. False if LLVM cannot write any.
bool Emit(llvm::Module& module, llvm::TargetMachine& machine, llvm::SmallVectorImpl<char>& object) {
  // Products of matrices would take several times as long, and take most of the time already.
  if (module.getInstructionCount() > kMaxAllocatedInstructions && !HasMatrixProduct(module)) {
    machine.setOptLevel(llvm::CodeGenOptLevel::None);
  }
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    return false;
  }
  passes.run(module);
  return true;
}

}  // namespace

const std::string& TargetDescription() {
  static const std::string description = std::string(kGeneratorVersion) + "|" +
                                         LLVM_VERSION_STRING + "|" +
                                         llvm::sys::getHostCPUName().str() + "|" + HostFeatures();
  return description;
}

ExecResult<std::vector<char>> CompileKernel(const ptx::Module& module, std::uint32_t kernel,
                                            const KernelLayout& layout,
                                            const ptx::BlockShape& block_shape) {
  const std::string name(module.functions[kernel].name);
  llvm::LLVMContext context;
  Unit unit(module, kernel, layout, block_shape, context);
  const std::unique_ptr<llvm::TargetMachine> machine = CreateMachine();
  if (machine == nullptr) {
    return Failure<ExecError>{ExecError::kUnsupported, "LLVM has no code generator for this host"};
  }
  unit.llvm_module().setDataLayout(machine->createDataLayout());
  unit.llvm_module().setTargetTriple(machine->getTargetTriple().str());
  const std::unique_ptr<llvm::Module> translated = unit.Emit();
  if (translated == nullptr) {
    return Failure<ExecError>{ExecError::kUnsupported, "kernel " + name + ": " + unit.error()};
  }
  // Hostile PTX may mix types in ways that our checks do not foresee.
  std::string problem;
  llvm::raw_string_ostream problem_stream(problem);
  if (llvm::verifyModule(*translated, &problem_stream)) {
    return Failure<ExecError>{ExecError::kInvalidPtx, "kernel " + name + ": " + problem};
  }
  if (!Optimise(*translated, *machine)) {
    return Failure<ExecError>{ExecError::kUnsupported, "this LLVM lacks a pass"};
  }
  llvm::SmallVector<char, 0> object;
  if (!Emit(*translated, *machine, object)) {
    return Failure<ExecError>{ExecError::kUnsupported, "LLVM cannot write object files"};
  }
  return std::vector<char>(object.begin(), object.end());
}

}  // namespace torpor::emulator
