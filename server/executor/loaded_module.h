#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/sha256.h"
#include "proto/cuda_api/cudart_commands.h"
#include "server/executor/device.h"
#include "server/executor/module_store.h"

namespace torpor::executor {

// A kernel of a loaded module.
struct LoadedKernel {
  CUfunction function = nullptr;
  wire::KernelEntry entry;
  Bytes parameter_bytes = 0;       // of the packed buffer
  int default_dynamic_shared = 0;  // bytes; the limit before anybody set another
  int most_dynamic_shared = 0;     // that was asked for; guarded by the module's mutex
};

// A variable of a loaded module.
struct LoadedVariable {
  CUdeviceptr address = 0;
  Bytes bytes = 0;
};

// One CUmodule and what is in it. Unchanging after Load but for function attributes.
class LoadedModule {
 public:
  // `image` as LoadModuleImage takes it. `variables`: those to look up; a name that the module does
  // not have is left out.
  static absl::StatusOr<std::shared_ptr<LoadedModule>> Load(const Device& device,
                                                            std::span<const std::uint8_t> image,
                                                            std::span<const std::string> variables);
  // With the variables that VariablesOf finds.
  static absl::StatusOr<std::shared_ptr<LoadedModule>> LoadFindingVariables(
      const Device& device, std::span<const std::uint8_t> image);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  // Null if there is none.
  LoadedKernel* FindKernel(std::string_view name);
  const std::map<std::string, LoadedKernel, std::less<>>& kernels() const { return kernels_; }
  const std::map<std::string, LoadedVariable, std::less<>>& variables() const { return variables_; }

  // The kernel's limit of dynamic shared memory. Sessions that share the module must not shrink
  // each other's: it only grows.
  CUresult RaiseSharedLimit(LoadedKernel& kernel, int bytes);
  // Another CUfunction_attribute, of a module that is not shared.
  CUresult SetAttribute(const LoadedKernel& kernel, CUfunction_attribute attribute, int value);

 private:
  LoadedModule(const Device& device, CUmodule module) : device_(device), module_(module) {}
  absl::Status ReadKernels();
  absl::Status ReadKernel(CUfunction function);
  absl::Status ReadVariable(const std::string& name);

  const Device& device_;
  const CUmodule module_;
  std::map<std::string, LoadedKernel, std::less<>> kernels_;
  std::map<std::string, LoadedVariable, std::less<>> variables_;
  std::mutex mutex_;  // of the kernels' most_dynamic_shared
};

// The executor's modules. Without variables a module holds no state and is loaded once for all
// sessions; with variables every session has its own. Thread-safe; loading blocks.
class ModuleLibrary {
 public:
  ModuleLibrary(const Device& device, const ModuleStore& store) : device_(device), store_(store) {}

  // NotFound: the node lacks the bytes. With `finds_variables` the session has the module for
  // itself, with all its variables; `variables` are not looked at.
  absl::StatusOr<std::shared_ptr<LoadedModule>> Load(const Sha256Digest& digest,
                                                     std::span<const std::string> variables,
                                                     bool finds_variables);
  // One without variables that nobody shares.
  absl::StatusOr<std::shared_ptr<LoadedModule>> LoadUnshared(const Sha256Digest& digest) const;

  absl::Status Store(const Sha256Digest& digest, std::span<const std::uint8_t> bytes) const {
    return store_.Write(digest, bytes);
  }

 private:
  const Device& device_;
  const ModuleStore& store_;
  std::mutex mutex_;
  std::map<Sha256Digest, std::weak_ptr<LoadedModule>> shared_;  // guarded by mutex_
};

}  // namespace torpor::executor
