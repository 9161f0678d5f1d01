#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/cuda_api/cudart_commands.h"
#include "server/executor/image/device_image.h"
#include "server/executor/module/loaded_module.h"

namespace torpor::executor {

// A kernel with the session's own settings.
struct SessionKernel {
  LoadedKernel* kernel = nullptr;
  std::shared_ptr<LoadedModule> module;
  std::uint64_t module_id = 0;
  int dynamic_shared = 0;        // bytes; the session's limit, which may be below a shared module's
  bool reads_variables = false;  // variables may have values of the session
};

// The modules and kernels of one session, and the values of modules' variables. A module shared
// with other sessions keeps the first values: a session takes a copy of its own (TakeOwn) before
// naming a variable. While the session is not on this GPU the values live in the image: each module
// with variables has a block there that the client allocated (ModuleBindGlobals). A word at the
// block's begin, zero in new memory, tells whether the block has values; if so, the module is the
// session's own on every GPU. Not thread-safe.
class SessionModules {
 public:
  // `tenant` owns the session. The references must outlive the object.
  SessionModules(const Device& device, ModuleLibrary& library, DeviceImage& image,
                 std::string tenant)
      : device_(device), library_(library), image_(image), tenant_(std::move(tenant)) {}

  // Keeps the bytes of a module that the client has sent.
  absl::Status Store(const Sha256Digest& digest, std::span<const std::uint8_t> bytes) {
    return library_.Store(digest, tenant_, bytes);
  }
  // NotFound: the client must send the bytes. Fills in all of `result` but `found`.
  absl::Status Load(std::uint64_t id, const Sha256Digest& digest,
                    const std::vector<std::string>& variables, bool finds_variables,
                    wire::ModuleLoadResult* result);
  // Unloads the module and the module's kernels. Requires that none of the kernels runs.
  absl::Status Unload(std::uint64_t id);
  // Assigns the block at `address` to the module. Returns whether the block has values although the
  // module is shared; the session must then call TakeOwn. InvalidArgument if the block is not the
  // session's memory. An unshared module gets the block's values, or initializes a block without
  // values. Waits for `stream`.
  absl::StatusOr<bool> BindGlobals(std::uint64_t id, std::uint64_t address, CUstream stream);

  // Whether the module may be in use by other sessions; false for an unknown module.
  bool IsShared(std::uint64_t id) const;
  // Replaces a shared module by a module of the session's own, whose variables have the block's
  // values, or the first values without a block. Requires that no work of the session runs.
  absl::Status TakeOwn(std::uint64_t id, CUstream stream);

  absl::Status CreateKernel(std::uint64_t id, std::uint64_t module_id, std::string_view name);
  // Returns null for an unknown kernel. Valid until a module is unloaded or a kernel is created.
  const SessionKernel* FindKernel(std::uint64_t id) const {
    const auto found = kernels_.find(id);
    return found == kernels_.end() ? nullptr : &found->second;
  }
  // Sets a CUfunction_attribute for the session alone; an attribute with NeedsOwnModule requires an
  // unshared module. NotFound for an unknown kernel.
  absl::Status SetAttribute(std::uint64_t kernel, CUfunction_attribute attribute, int value);
  // True for all attributes but the limit of dynamic shared memory.
  static bool NeedsOwnModule(CUfunction_attribute attribute) {
    return attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  }

  // Returns null for an unknown module or variable.
  const LoadedVariable* FindVariable(std::uint64_t module_id, std::string_view name) const;
  // Whether [address, address + bytes) lies in a variable of the session's own modules.
  bool OwnsVariable(std::uint64_t address, Bytes bytes) const;

  // Whether an aligned word of `parameters` is the address of a variable of the session's own
  // modules, as known to the GPU or to the client.
  bool PointToVariable(std::span<const std::uint8_t> parameters) const;

  // Records `address` as the client's address of a variable of an unshared module. `address` was
  // valid on the GPU that answered the client's query, possibly an earlier GPU.
  absl::Status Publish(std::uint64_t module_id, std::string_view name, std::uint64_t address);
  // Whether a published address differs from the variable's address on this GPU.
  bool has_moved() const { return !moved_.empty(); }
  // Translates a published address to the variable's address on the current GPU; returns any other
  // number unchanged.
  std::uint64_t Translate(std::uint64_t address) const;

  // SaveVariables enqueues copies of variables to blocks, before the image leaves the GPU.
  // RestoreVariables enqueues copies back for blocks outside of `resident_before`; if a block has
  // got values elsewhere, the session takes its own module.
  absl::Status SaveVariables(CUstream stream) const;
  absl::Status RestoreVariables(const memory::ExtentSet& resident_before, CUstream stream);

 private:
  struct Module {
    std::shared_ptr<LoadedModule> loaded;
    Sha256Digest digest{};
    bool is_shared = false;        // with other sessions
    bool reads_variables = false;  // whether kernels read variables
    std::uint64_t block = 0;       // address; 0: not bound
  };

  // A variable whose address here differs from the client's.
  struct Moved {
    std::uint64_t module_id = 0;
    std::uint64_t published = 0;
    std::uint64_t here = 0;
    Bytes bytes = 0;
  };

  absl::Status Exchange(std::uint64_t id, Module& module);
  static Bytes BlockBytes(const LoadedModule& module);
  absl::StatusOr<bool> BlockHasValues(const Module& module, CUstream stream) const;
  // The block gets the variables' values.
  absl::Status FillBlock(const Module& module, CUstream stream);
  bool BlockIsResident(const Module& module) const;
  // Enqueues one copy for each variable.
  absl::Status CopyVariables(const Module& module, bool to_block, CUstream stream) const;

  const Device& device_;
  ModuleLibrary& library_;
  DeviceImage& image_;
  const std::string tenant_;
  std::map<std::uint64_t, Module> modules_;
  absl::flat_hash_map<std::uint64_t, SessionKernel> kernels_;
  std::vector<Moved> moved_;
};

}  // namespace torpor::executor
