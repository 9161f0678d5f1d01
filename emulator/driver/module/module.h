#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/driver/base/driver_result.h"
#include "emulator/driver/base/handle_table.h"
#include "emulator/driver/device/taken_memory.h"
#include "emulator/exec/program.h"

namespace torpor::emulator {

class Context;
class ModuleObject;

// A kernel of a loaded module. Thread-safe.
class FunctionObject {
 public:
  FunctionObject(std::shared_ptr<Program> program, const KernelInfo& info, CUmodule module);

  const KernelInfo& info() const { return info_; }
  const std::shared_ptr<Program>& program() const { return program_; }
  CUmodule module() const { return module_; }

  // Whether the kernel was loaded in CUDA's sense, by cuFuncLoad or by a launch.
  bool loaded() const { return loaded_.load(std::memory_order_acquire); }
  void MarkLoaded() { loaded_.store(true, std::memory_order_release); }
  // Compiles the kernel at the first call, which may take a tenth of a second. The code fits all
  // block shapes, but may be faster for blocks of shape `block`.
  CUresult Compile(const Dim3& block);

  // Fails with CUDA_ERROR_INVALID_VALUE for an attribute that cuda.h does not name.
  DriverResult<int> Attribute(CUfunction_attribute attribute) const;
  CUresult SetAttribute(CUfunction_attribute attribute, int value, unsigned shared_optin);
  // Upper bound, in bytes, on a launch's dynamic shared memory.
  unsigned max_dynamic_shared() const { return max_dynamic_shared_.load(); }
  // The size of clusters that attributes ask for, in blocks; 0x0x0 if none do.
  Dim3 required_cluster() const;
  std::uint32_t max_cluster_blocks() const {
    return large_clusters_.load() != 0 ? kMaxClusterBlocks : kPortableClusterBlocks;
  }

 private:
  const std::shared_ptr<Program> program_;
  const KernelInfo& info_;
  const CUmodule module_;
  std::atomic<bool> loaded_{false};
  std::atomic<bool> compiled_{false};
  std::atomic<unsigned> max_dynamic_shared_;
  std::atomic<int> carveout_{-1};
  std::atomic<int> large_clusters_{0};
  std::array<std::atomic<int>, 3> required_cluster_{};  // width, height, depth
  std::atomic<int> cluster_policy_{0};
};

using FunctionTable = HandleTable<FunctionObject, CUfunction>;

// A translation unit, or several linked ones, loaded in a context.
class ModuleObject {
 public:
  // `function_table`, where AddFunctions makes handles, must outlive the module. `code` is the
  // device memory of the module's code.
  ModuleObject(std::shared_ptr<Program> program, std::weak_ptr<Context> context,
               FunctionTable& function_table, TakenMemory code);
  ~ModuleObject();
  ModuleObject(const ModuleObject&) = delete;
  ModuleObject& operator=(const ModuleObject&) = delete;

  // Makes the handles of the module's kernels; `handle` is the module's own. Call once.
  void AddFunctions(CUmodule handle);

  // Returns null if the module has no such kernel. Call after AddFunctions.
  CUfunction Find(std::string_view name) const;
  const std::vector<CUfunction>& functions() const { return functions_; }
  const GlobalVariable* FindVariable(std::string_view name) const;
  const std::weak_ptr<Context>& context() const { return context_; }

 private:
  const std::shared_ptr<Program> program_;
  const std::weak_ptr<Context> context_;
  FunctionTable& function_table_;
  const TakenMemory code_;
  std::vector<KernelInfo> kernels_;
  std::vector<CUfunction> functions_;
};

}  // namespace torpor::emulator
