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

// A kernel as a session launches it.
struct SessionKernel {
  LoadedKernel* kernel = nullptr;
  std::shared_ptr<LoadedModule> module;
  std::uint64_t module_id = 0;
  int dynamic_shared = 0;        // bytes; the session's limit, which a shared module's may exceed
  bool reads_variables = false;  // whose values may be the session's own
};

// The modules and kernels of one session, and the values of its modules' variables. A module that
// is shared with other sessions has the first values, which nobody changes: before a session names
// a variable it takes a copy of its own (TakeOwn). While the session is not on this GPU the values
// live in its image: each module with variables has a block there that the client allocated
// (ModuleBindGlobals). A word at the block's begin, zero in new memory, tells whether the block has
// values: then the module is the session's own, on whichever GPU. Of one thread at a time.
class SessionModules {
 public:
  SessionModules(const Device& device, ModuleLibrary& library, DeviceImage& image)
      : device_(device), library_(library), image_(image) {}

  // NotFound: the node lacks the bytes. `result` has all but `found`.
  absl::Status Load(std::uint64_t id, const Sha256Digest& digest,
                    const std::vector<std::string>& variables, bool finds_variables,
                    wire::ModuleLoadResult* result);
  // Forgets the module and its kernels; nothing of them runs.
  absl::Status Unload(std::uint64_t id);
  // Whether the session is to take its own module now: the block has values. One that it does not
  // share gets them, or the block gets its values.
  absl::StatusOr<bool> BindGlobals(std::uint64_t id, std::uint64_t address, CUstream stream);

  // Whether others use the module, too. False if there is none.
  bool IsShared(std::uint64_t id) const;
  // Exchanges a module that is shared for the session's own, whose variables have the block's
  // values, else their first ones. Nothing of the session runs.
  absl::Status TakeOwn(std::uint64_t id, CUstream stream);

  absl::Status CreateKernel(std::uint64_t id, std::uint64_t module_id, std::string_view name);
  // Null if there is none. Valid until its module is unloaded or a kernel is created.
  const SessionKernel* FindKernel(std::uint64_t id) const {
    const auto found = kernels_.find(id);
    return found == kernels_.end() ? nullptr : &found->second;
  }
  // Sets a CUfunction_attribute for this session alone: those that NeedsOwnModule names only in a
  // module that is not shared. NotFound if there is no such kernel.
  absl::Status SetAttribute(std::uint64_t kernel, CUfunction_attribute attribute, int value);
  // All but the limit of dynamic shared memory.
  static bool NeedsOwnModule(CUfunction_attribute attribute) {
    return attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  }

  // Null if there is no such module or variable.
  const LoadedVariable* FindVariable(std::uint64_t module_id, std::string_view name) const;
  // Whether [address, address + bytes) lies in a variable of the session's own modules.
  bool OwnsVariable(std::uint64_t address, Bytes bytes) const;

  // Whether an aligned word of `parameters` is an address in such a variable, where it is here or
  // where the client knows it.
  bool PointToVariable(std::span<const std::uint8_t> parameters) const;

  // The client knows the variable, of a module that is not shared, as `address`, which is where it
  // was on the GPU that was asked.
  absl::Status Publish(std::uint64_t module_id, std::string_view name, std::uint64_t address);
  // Whether some published address is not the variable's on this GPU.
  bool has_moved() const { return !moved_.empty(); }
  // Where a published address lies on this GPU; any other number is given back as it is.
  std::uint64_t Translate(std::uint64_t address) const;

  // Variables to blocks, before the image leaves the GPU; and back, for blocks that have come
  // since only `resident_before` was resident. Where a block has got values elsewhere the session
  // takes its own module.
  absl::Status SaveVariables(CUstream stream) const;
  absl::Status RestoreVariables(const memory::ExtentSet& resident_before, CUstream stream);

 private:
  struct Module {
    std::shared_ptr<LoadedModule> loaded;
    Sha256Digest digest{};
    bool is_shared = false;        // with other sessions
    bool reads_variables = false;  // its kernels do
    std::uint64_t block = 0;       // address; 0: not bound
  };

  // A variable that has another address here than the client knows.
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
  // Enqueues one copy a variable.
  absl::Status CopyVariables(const Module& module, bool to_block, CUstream stream) const;

  const Device& device_;
  ModuleLibrary& library_;
  DeviceImage& image_;
  std::map<std::uint64_t, Module> modules_;
  absl::flat_hash_map<std::uint64_t, SessionKernel> kernels_;
  std::vector<Moved> moved_;
};

}  // namespace torpor::executor
