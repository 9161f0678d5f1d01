#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
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
  int default_dynamic_shared = 0;  // bytes; the limit before anybody set another
  int max_dynamic_shared = 0;      // that was asked for; guarded by the module's mutex
};

// A variable of a loaded module.
struct LoadedVariable {
  CUdeviceptr address = 0;
  Bytes bytes = 0;
};

// One CUmodule and what is in it. Unchanging after Load but for function attributes.
class LoadedModule {
 public:
  // `image` as LoadModuleCode takes it. `variables`: those to look up; a name that the module does
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
  Mutex mutex_;  // guards the kernels' max_dynamic_shared
};

// The executor's modules. What cannot differ between sessions is loaded once for all of them: a
// module whose code uses none of its variables (CodeMayUseVariables). Thread-safe; loading blocks.
class ModuleLibrary {
 public:
  ModuleLibrary(const Device& device, const ModuleStore& store) : device_(device), store_(store) {}

  struct Loaded {
    std::shared_ptr<LoadedModule> module;
    bool is_shared = false;  // its variables have their first values, and nobody may change them
  };
  // With the variables that are named or, with `finds_variables`, with all that it has; then
  // `variables` are not looked at. NotFound: the node lacks the bytes.
  absl::StatusOr<Loaded> Load(const Sha256Digest& digest, std::span<const std::string> variables,
                              bool finds_variables);
  // One that nobody shares, with the same variables as `like`, which is of the same bytes.
  absl::StatusOr<std::shared_ptr<LoadedModule>> LoadUnshared(const Sha256Digest& digest,
                                                             const LoadedModule& like) const;

  absl::Status Store(const Sha256Digest& digest, std::span<const std::uint8_t> bytes) const {
    return store_.Write(digest, bytes);
  }

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
  // What sessions ask for alike.
  struct Slot {
    Mutex loading;                       // held while loading: only equal requests wait
    std::weak_ptr<LoadedModule> module;  // guarded by the library's mutex
  };

  // Null if it is known not to be shared.
  std::shared_ptr<Slot> SlotOf(const Request& request);
  absl::StatusOr<std::shared_ptr<LoadedModule>> LoadImage(
      const Request& request, std::span<const std::uint8_t> image) const;
  absl::StatusOr<Loaded> LoadInto(Slot& slot, const Request& request);

  const Device& device_;
  const ModuleStore& store_;
  Mutex mutex_;
  std::map<Request, std::shared_ptr<Slot>> slots_ ABSL_GUARDED_BY(mutex_);
  std::set<Sha256Digest> unshareable_ ABSL_GUARDED_BY(mutex_);  // known after loading
};

}  // namespace torpor::executor
