#include "client_shim/cudart/module/modules.h"

#include <algorithm>
#include <cstring>
#include <shared_mutex>
#include <span>
#include <unordered_set>

#include "base/sha256.h"
#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/module/module_code.h"
#include "nvidia/fatbin_format.h"
#include "proto/wire/relocatable_module.h"

namespace torpor::shim {
namespace {

// CUDA's limit of shared memory for kernels without a larger one by cudaFuncSetAttribute.
constexpr std::uint64_t kDefaultSharedBytes = std::uint64_t{48} * 1024;

// All modules, kernels and variables of the process. Thread-safe.
class Registry {
 public:
  void AddModule(ClientModule* module) {
    std::unique_lock lock(mutex_);
    modules_.insert(module);
  }
  void RemoveModule(ClientModule* module) {
    std::unique_lock lock(mutex_);
    modules_.erase(module);
  }
  void AddKernel(ClientKernel* kernel) {
    std::unique_lock lock(mutex_);
    handles_.insert(kernel);
    if (kernel->host_function) kernels_[kernel->host_function] = kernel;
  }
  void RemoveKernel(ClientKernel* kernel) {
    std::unique_lock lock(mutex_);
    handles_.erase(kernel);
  }
  void AddVariable(const void* host_variable, ClientVariable variable) {
    std::unique_lock lock(mutex_);
    variable.module->variable_names.push_back(variable.name);
    variables_[host_variable] = std::move(variable);
  }
  // Stops at the first error. `visit` must not register anything.
  template <typename Visit>
  cudaError_t VisitKernels(const Visit& visit) {
    std::shared_lock lock(mutex_);
    for (ClientKernel* const kernel : handles_) TORPOR_TRY(visit(*kernel));
    return cudaSuccess;
  }
  template <typename Visit>
  cudaError_t VisitModules(const Visit& visit) {
    std::shared_lock lock(mutex_);
    for (ClientModule* const module : modules_) TORPOR_TRY(visit(*module));
    return cudaSuccess;
  }
  ClientKernel* FindKernel(const void* function) {
    std::shared_lock lock(mutex_);
    if (const auto found = kernels_.find(function); found != kernels_.end()) return found->second;
    auto* const handle = static_cast<ClientKernel*>(const_cast<void*>(function));
    return handles_.contains(handle) ? handle : nullptr;
  }
  const ClientVariable* FindVariable(const void* symbol) {
    std::shared_lock lock(mutex_);
    const auto found = variables_.find(symbol);
    return found == variables_.end() ? nullptr : &found->second;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_set<ClientModule*> modules_;
  std::unordered_map<const void*, ClientKernel*> kernels_;  // by host function
  std::unordered_set<ClientKernel*> handles_;               // every kernel
  std::unordered_map<const void*, ClientVariable> variables_;
};

Registry& TheRegistry() {
  static Registry* const registry = new Registry();  // programs unregister from exit handlers
  return *registry;
}

// The bytes of a module for the executor: code or fatbin in place, or linked parts encoded in
// `copy`.
std::span<const std::uint8_t> CodeOf(const ClientModule& module, std::vector<std::uint8_t>& copy) {
  if (!module.code.empty()) return module.code;
  if (module.parts == nullptr) return FatbinAt(module.fatbin);
  wire::RelocatableModule relocatable;
  relocatable.linked = FatbinAt(module.fatbin);
  for (const void* const* part = module.parts; *part != nullptr; ++part) {
    relocatable.parts.push_back(FatbinAt(*part));
  }
  copy = wire::Encoded(relocatable);
  return copy;
}

// Sends the module's bytes through the window, piece by piece.
cudaError_t Upload(std::span<const std::uint8_t> code, const Sha256Digest& hash) {
  for (std::uint64_t at = 0; at < code.size();) {
    WindowPiece piece;
    TORPOR_TRY(Core().AcquireWindow(code.size() - at, piece));
    std::memcpy(piece.data, code.data() + at, piece.bytes);
    wire::ModuleUpload upload;
    upload.hash = hash;
    upload.total_bytes = code.size();
    upload.at = at;
    upload.payload = wire::Payload::kWindow;
    upload.offset = piece.offset;
    upload.bytes = piece.bytes;
    const cudaError_t error = Ask(upload);
    TraceBytes(piece.bytes, 0);
    Core().ReleaseWindow(piece);
    TORPOR_TRY(error);
    at += piece.bytes;
  }
  return cudaSuccess;
}

// Allocates the block of device memory in which the module's variables travel from GPU to GPU.
cudaError_t BindGlobals(std::uint64_t module, std::uint64_t globals_bytes, std::uint64_t& block) {
  block = 0;
  if (globals_bytes == 0) return cudaSuccess;
  TORPOR_TRY(Core().Malloc(globals_bytes, block));
  return Core().Configure(module, Encode(wire::ModuleBindGlobals{module, block}));
}

// Asks the executor to load by hash. `result.found` is 0 if the node lacks the bytes.
cudaError_t AskLoad(const wire::ModuleLoad& load, wire::ModuleLoadResult& result,
                    std::string* reason) {
  CallReply reply;
  TORPOR_TRY(Core().Call(Encode(load), reply));
  TORPOR_TRY(Core().TakeAsyncError());
  if (reply.status != cudaSuccess && reason) *reason = reply.message;
  if (reply.status != cudaSuccess) return static_cast<cudaError_t>(reply.status);
  wire::Reader reader(reply.result);
  reader(result);
  return reader.done() ? cudaSuccess : cudaErrorUnknown;
}

// Fills in the kernel's description, equal on all devices, from the result of the module's load.
cudaError_t Describe(ClientKernel& kernel) {
  const ClientModule& module = *kernel.module;
  const auto found = module.kernels.find(kernel.name);
  if (found == module.kernels.end()) return cudaErrorInvalidDeviceFunction;
  kernel.entry = found->second;
  for (const wire::KernelParameter& parameter : kernel.entry.parameters)
    kernel.parameter_bytes = std::max(kernel.parameter_bytes, parameter.offset + parameter.bytes);
  kernel.on_devices = std::make_unique<PerDevice<KernelOnDevice>>();
  kernel.is_described = true;
  return cudaSuccess;
}

// Loads by hash first; sends the bytes only to a node that lacks them. Call with the module's mutex
// held.
cudaError_t LoadLocked(ClientModule& module, std::string* reason) {
  std::vector<std::uint8_t> copy;
  const std::span<const std::uint8_t> code = CodeOf(module, copy);
  wire::ModuleLoad load;
  load.module = Core().MintHandle(HandleKind::kModule);
  load.hash = Sha256(code.data(), code.size());
  load.variables = module.variable_names;
  load.finds_variables = module.finds_variables ? 1 : 0;
  wire::ModuleLoadResult result;
  TORPOR_TRY(AskLoad(load, result, reason));
  if (result.found == 0) {
    TORPOR_TRY(Upload(code, load.hash));
    TORPOR_TRY(AskLoad(load, result, reason));
    if (result.found == 0) return cudaErrorInvalidKernelImage;
  }
  TORPOR_TRY(Core().Create(
      load.module,
      Encode(wire::ModuleUse{load.module, load.hash, load.variables, load.finds_variables})));
  TORPOR_TRY(BindGlobals(load.module, result.globals_bytes, module.variables_block.here()));
  module.wire.here() = load.module;
  for (wire::KernelEntry& kernel : result.kernels) {
    const std::string name = kernel.name;
    module.kernels.emplace(name, std::move(kernel));  // every device has equal entries
  }
  module.loaded_on.AddCurrent();
  return cudaSuccess;
}

}  // namespace

void AddModule(ClientModule* module) { TheRegistry().AddModule(module); }
void RemoveModule(ClientModule* module) { TheRegistry().RemoveModule(module); }
void AddKernel(ClientKernel* kernel) { TheRegistry().AddKernel(kernel); }
void RemoveKernel(ClientKernel* kernel) { TheRegistry().RemoveKernel(kernel); }

ClientModule* RegisterModule(const void* wrapper) {
  const auto* fatbin = static_cast<const FatbinWrapper*>(wrapper);
  auto* const module = new ClientModule();
  module->fatbin = fatbin->data;
  if (fatbin->version == kRelocatableWrapper) module->parts = fatbin->relocatable;
  AddModule(module);
  return module;
}

void RegisterKernel(ClientModule* module, const void* host_function, const char* name) {
  auto* const kernel = new ClientKernel();
  kernel->module = module;
  kernel->name = name;
  kernel->host_function = host_function;
  AddKernel(kernel);
}

void RegisterVariable(ClientModule* module, const void* host_variable, const char* name,
                      std::uint64_t bytes) {
  TheRegistry().AddVariable(host_variable, {module, name, bytes});
}

ClientKernel* FindKernel(const void* function) { return TheRegistry().FindKernel(function); }

cudaError_t UseKernel(const void* function, ClientKernel*& kernel) {
  kernel = FindKernel(function);
  return kernel ? PrepareKernel(*kernel) : cudaErrorInvalidDeviceFunction;
}

cudaError_t PrepareKernel(ClientKernel& kernel) {
  if (kernel.ready_on.HasCurrent()) return cudaSuccess;
  ClientModule& module = *kernel.module;
  TORPOR_TRY(LoadModule(module));
  std::lock_guard lock(module.mutex);
  if (kernel.ready_on.HasCurrent()) return cudaSuccess;
  if (!kernel.is_described) TORPOR_TRY(Describe(kernel));
  const auto static_shared = static_cast<std::uint64_t>(kernel.entry.static_shared_bytes);
  kernel.here().max_dynamic_shared =
      kDefaultSharedBytes - std::min(kDefaultSharedBytes, static_shared);
  const std::uint64_t wire = kernel.here().wire = Core().MintHandle(HandleKind::kKernel);
  TORPOR_TRY(
      Core().Create(wire, Encode(wire::KernelCreate{wire, module.wire.here(), kernel.name})));
  kernel.ready_on.AddCurrent();
  return cudaSuccess;
}

// A registered kernel has no library, and is never freed.
std::shared_ptr<ClientKernel> Hold(ClientKernel& kernel) {
  return {kernel.library.lock(), &kernel};
}

cudaError_t LoadModule(ClientModule& module, std::string* reason) {
  if (module.loaded_on.HasCurrent()) return cudaSuccess;
  TORPOR_TRY(Begin());
  std::lock_guard lock(module.mutex);
  if (module.is_gone) return cudaErrorInvalidResourceHandle;
  return module.loaded_on.HasCurrent() ? cudaSuccess : LoadLocked(module, reason);
}

cudaError_t UnloadModule(ClientModule& module) {
  std::lock_guard lock(module.mutex);
  if (!module.loaded_on.RemoveCurrent()) return cudaSuccess;
  const std::uint64_t wire = module.wire.here();
  return Core().Destroy(wire, Encode(wire::ModuleUnload{wire}));
}

void LeaveUnloaded(ClientModule& module) {
  std::lock_guard lock(module.mutex);
  module.is_gone = true;
}

cudaError_t ForgetKernel(ClientKernel& kernel) {
  if (!kernel.ready_on.RemoveCurrent()) return cudaSuccess;
  return Core().Destroy(kernel.here().wire, {});  // unloading the module destroys the kernel
}

cudaError_t UnloadAllModules() {
  TORPOR_TRY(TheRegistry().VisitKernels(ForgetKernel));
  return TheRegistry().VisitModules(UnloadModule);
}

cudaError_t UseVariable(const void* symbol, const ClientVariable*& variable) {
  variable = TheRegistry().FindVariable(symbol);
  return variable ? LoadModule(*variable->module) : cudaErrorInvalidSymbol;
}

}  // namespace torpor::shim
