#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/sha256.h"
#include "proto/cuda_api/cudart_commands.h"
#include "server/executor/gpu/device.h"
#include "server/executor/module/module_store.h"

namespace torpor::executor {

// A kernel of a loaded module.
struct LoadedKernel {
  CUfunction function = nullptr;
  wire::KernelEntry entry;
  Bytes parameter_bytes = 0;       // of the packed buffer
  int default_dynamic_shared = 0;  // bytes; the limit before any session set another
  int max_dynamic_shared = 0;      // of all sessions' limits; guarded by the module's mutex
};

// A variable of a loaded module.
struct LoadedVariable {
  CUdeviceptr address = 0;
  Bytes bytes = 0;
};

// One CUmodule with kernels and variables. Immutable after Load except for function attributes.
class LoadedModule {
 public:
  // Loads `code` (see LoadModuleCode), which may be hostile, and looks up `variables`; omits names
  // that the module lacks. Blocks.
  static absl::StatusOr<std::shared_ptr<LoadedModule>> Load(const Device& device,
                                                            std::span<const std::uint8_t> code,
                                                            std::span<const std::string> variables);
  // Loads with the variables that VariablesOf finds.
  static absl::StatusOr<std::shared_ptr<LoadedModule>> LoadFindingVariables(
      const Device& device, std::span<const std::uint8_t> code);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  // Returns null if there is no such kernel or variable.
  LoadedKernel* FindKernel(std::string_view name);
  const std::map<std::string, LoadedKernel, std::less<>>& kernels() const { return kernels_; }
  const std::map<std::string, LoadedVariable, std::less<>>& variables() const { return variables_; }

  // Raises the kernel's limit of dynamic shared memory. The limit only grows, since sessions that
  // share the module must not lower each other's limits.
  CUresult RaiseSharedLimit(LoadedKernel& kernel, int bytes);
  // Sets another CUfunction_attribute; the module must not be shared.
  CUresult SetAttribute(const LoadedKernel& kernel, CUfunction_attribute attribute, int value);

 private:
  LoadedModule(const Device& device, CUmodule module, Bytes code_bytes)
      : device_(device), module_(module), code_bytes_(code_bytes) {}
  absl::Status ReadKernels();
  absl::Status ReadKernel(CUfunction function);
  absl::Status ReadVariable(const std::string& name);

  const Device& device_;
  const CUmodule module_;
  const Bytes code_bytes_;
  std::map<std::string, LoadedKernel, std::less<>> kernels_;
  std::map<std::string, LoadedVariable, std::less<>> variables_;
  Mutex mutex_;  // guards the kernels' max_dynamic_shared
};

// The executor's modules. A module whose code uses none of the module's variables
// (CodeMayUseVariables) behaves the same in every session and is loaded once for all sessions.
// Thread-safe; loading blocks. `device` and `store` must outlive the library.
class ModuleLibrary {
 public:
  ModuleLibrary(const Device& device, const ModuleStore& store) : device_(device), store_(store) {}

  struct Loaded {
    std::shared_ptr<LoadedModule> module;
    bool is_shared = false;  // variables have their first values, and no session may change these
  };
  // Loads a module with the given variables or, with `finds_variables`, with all variables; then
  // `variables` is ignored. NotFound: the node lacks the bytes, or the tenant has not shown them
  // yet.
  absl::StatusOr<Loaded> Load(const Sha256Digest& digest, const std::string& tenant,
                              std::span<const std::string> variables, bool finds_variables);
  // Loads a module for one session alone, with the variables of `like`, a module of the same bytes.
  absl::StatusOr<std::shared_ptr<LoadedModule>> LoadUnshared(const Sha256Digest& digest,
                                                             const LoadedModule& like) const;

  // Keeps the module's bytes, which the tenant has shown.
  absl::Status Store(const Sha256Digest& digest, const std::string& tenant,
                     std::span<const std::uint8_t> bytes);

 private:
  struct Request {
    Sha256Digest digest{};
    bool finds_variables = false;
    std::vector<std::string> variables;

    bool operator<(const Request& other) const {
      return std::tie(digest, finds_variables, variables) <
             std::tie(other.digest, other.finds_variables, other.variables);
    }
  };
  // The key under which sessions share a module.
  struct Slot {
    Mutex loading;                       // held while loading: only equal requests wait
    std::weak_ptr<LoadedModule> module;  // guarded by the library's mutex
  };

  // NotFound if the tenant has not shown the module's bytes.
  absl::Status CheckHolder(const Sha256Digest& digest, const std::string& tenant);
  // Returns null if the module is known to be unshareable.
  std::shared_ptr<Slot> SlotOf(const Request& request);
  absl::StatusOr<std::shared_ptr<LoadedModule>> LoadCode(const Request& request,
                                                         std::span<const std::uint8_t> code) const;
  absl::StatusOr<Loaded> LoadInto(Slot& slot, const Request& request);

  const Device& device_;
  const ModuleStore& store_;
  Mutex mutex_;
  std::map<Request, std::shared_ptr<Slot>> slots_ ABSL_GUARDED_BY(mutex_);
  std::set<Sha256Digest> unshareable_ ABSL_GUARDED_BY(mutex_);  // known after loading
  // What the store has said: sessions that come to this GPU load hundreds of modules.
  std::set<std::pair<Sha256Digest, std::string>> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::executor
