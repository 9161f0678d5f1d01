#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/exec/warp_context.h"
#include "emulator/ptx/lane_analysis.h"
#include "emulator/ptx/module.h"

namespace torpor::emulator {

inline constexpr std::uint32_t kSharedAlignment = 256;
inline constexpr std::uint32_t kDynamicSharedAlignment = 16;  // at least

// Where a kernel's memory lies; the same for all variants of the kernel.
struct KernelLayout {
  std::map<std::uint32_t, std::uint32_t> shared_offsets;  // variable -> offset in shared memory
  std::uint32_t static_shared_bytes = 0;
  std::uint32_t dynamic_shared_offset = 0;               // behind the static part, padded
  std::uint32_t shared_alignment = kSharedAlignment;     // of where shared memory begins
  bool reserved_shared = false;                          // whether the system's part of it is used
  std::map<std::uint32_t, std::uint32_t> local_offsets;  // variable -> offset in its frame
  std::map<std::uint32_t, std::uint32_t> local_bytes;    // function -> bytes a lane
  bool dynamic_stack = false;                            // whether frames grow by more than that
  // Whether a warp that waits returns from its code (see KernelEntry). If not, because others of
  // its functions may wait, or because its state is large, it waits on a stack of its own.
  bool resumable = false;
  std::vector<std::uint32_t> functions;      // reachable, the kernel first
  std::vector<std::uint32_t> address_taken;  // functions that may be called indirectly
};

KernelLayout LayOutKernel(const ptx::Module& module, std::uint32_t kernel);

// Function pointers are made-up addresses: no allocation ever has one.
inline constexpr std::uint64_t kFunctionAddressBase = 0x10;
constexpr std::uint64_t FunctionAddress(std::uint32_t function) {
  return kFunctionAddressBase + std::uint64_t{16} * function;
}

// What every function of generated code needs.
void SetTargetAttributes(llvm::Function& function);

inline constexpr char kEntrySymbol[] = "torpor_kernel";   // a KernelEntry
inline constexpr char kTraitsSymbol[] = "torpor_traits";  // a CodeTraits

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
