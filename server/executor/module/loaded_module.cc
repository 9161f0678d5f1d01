#include "server/executor/module/loaded_module.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/executor/gpu/expected_failures.h"
#include "server/executor/module/module_loader.h"
#include "server/executor/module/module_sharing.h"
#include "server/executor/module/module_variables.h"

namespace torpor::executor {
namespace {

// More parameters than any kernel has; bounds the loop for a driver that never ends the list.
constexpr std::size_t kMaxParameters = 8192;

}  // namespace

absl::StatusOr<std::shared_ptr<LoadedModule>> LoadedModule::Load(
    const Device& device, std::span<const std::uint8_t> code,
    std::span<const std::string> variables) {
  TORPOR_ASSIGN_OR_RETURN(const CUmodule handle, LoadModuleCode(device, code));
  std::shared_ptr<LoadedModule> module(new LoadedModule(device, handle, code.size()));
  TORPOR_RETURN_IF_ERROR(module->ReadKernels());
  for (const std::string& name : variables) {
    TORPOR_RETURN_IF_ERROR(module->ReadVariable(name));
  }
  return module;
}

absl::StatusOr<std::shared_ptr<LoadedModule>> LoadedModule::LoadFindingVariables(
    const Device& device, std::span<const std::uint8_t> code) {
  // Load first: a search is wasted on code that the driver rejects.
  TORPOR_ASSIGN_OR_RETURN(std::shared_ptr<LoadedModule> module, Load(device, code, {}));
  TORPOR_ASSIGN_OR_RETURN(const std::set<std::string> names, VariablesOf(code));
  for (const std::string& name : names) TORPOR_RETURN_IF_ERROR(module->ReadVariable(name));
  return module;
}

LoadedModule::~LoadedModule() { device_.discarded().Add(module_, code_bytes_); }

absl::Status LoadedModule::ReadKernels() {
  const CudaDriver& driver = device_.driver();
  unsigned count = 0;
  TORPOR_RETURN_IF_ERROR(
      device_.Status(driver.ModuleGetFunctionCount(&count, module_), "cuModuleGetFunctionCount"));
  std::vector<CUfunction> functions(count);
  if (count > 0) {
    TORPOR_RETURN_IF_ERROR(
        device_.Status(driver.ModuleEnumerateFunctions(functions.data(), count, module_),
                       "cuModuleEnumerateFunctions"));
  }
  for (const CUfunction function : functions) TORPOR_RETURN_IF_ERROR(ReadKernel(function));
  return absl::OkStatus();
}

absl::Status LoadedModule::ReadKernel(CUfunction function) {
  const CudaDriver& driver = device_.driver();
  const char* name = nullptr;
  TORPOR_RETURN_IF_ERROR(device_.Status(driver.FuncGetName(&name, function), "cuFuncGetName"));
  LoadedKernel kernel;
  kernel.function = function;
  kernel.entry.name = name;
  const ExpectedFailures past_the_last_parameter;
  for (std::size_t i = 0; i < kMaxParameters; ++i) {
    std::size_t offset = 0;
    std::size_t bytes = 0;
    if (driver.FuncGetParamInfo(function, i, &offset, &bytes) != CUDA_SUCCESS) break;
    kernel.entry.parameters.push_back(
        {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes)});
    kernel.parameter_bytes = std::max<Bytes>(kernel.parameter_bytes, offset + bytes);
  }
  const auto attribute = [&](CUfunction_attribute which) {
    int value = 0;
    driver.FuncGetAttribute(&value, which, function);
    return value;
  };
  kernel.entry.max_threads = attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  kernel.entry.static_shared_bytes = attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  kernel.entry.cluster = {attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH),
                          attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT),
                          attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)};
  kernel.entry.needs_cluster = attribute(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
  kernel.default_dynamic_shared = attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  kernels_.emplace(kernel.entry.name, std::move(kernel));
  return absl::OkStatus();
}

absl::Status LoadedModule::ReadVariable(const std::string& name) {
  LoadedVariable variable;
  std::size_t bytes = 0;
  const ExpectedFailures of_unused_variables;
  const CUresult result =
      device_.driver().ModuleGetGlobal(&variable.address, &bytes, module_, name.c_str());
  // The compiler drops unused variables, although the host code registers them.
  if (result == CUDA_ERROR_NOT_FOUND) return absl::OkStatus();
  TORPOR_RETURN_IF_ERROR(device_.Status(result, "cuModuleGetGlobal"));
  variable.bytes = bytes;
  variables_.emplace(name, variable);
  return absl::OkStatus();
}

LoadedKernel* LoadedModule::FindKernel(std::string_view name) {
  const auto found = kernels_.find(name);
  return found == kernels_.end() ? nullptr : &found->second;
}

CUresult LoadedModule::RaiseSharedLimit(LoadedKernel& kernel, int bytes) {
  MutexLock lock(&mutex_);
  if (bytes >= 0 && bytes <= kernel.max_dynamic_shared) return CUDA_SUCCESS;
  const CUresult result = device_.driver().FuncSetAttribute(
      kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
  if (result == CUDA_SUCCESS) kernel.max_dynamic_shared = bytes;
  return result;
}

CUresult LoadedModule::SetAttribute(const LoadedKernel& kernel, CUfunction_attribute attribute,
                                    int value) {
  return device_.driver().FuncSetAttribute(kernel.function, attribute, value);
}

absl::Status ModuleLibrary::Store(const Sha256Digest& digest, const std::string& tenant,
                                  std::span<const std::uint8_t> bytes) {
  TORPOR_RETURN_IF_ERROR(store_.Write(digest, bytes));
  return store_.NoteHolder(digest, tenant);
}

absl::Status ModuleLibrary::CheckHolder(const Sha256Digest& digest, const std::string& tenant) {
  const std::pair holder(digest, tenant);
  {
    MutexLock lock(&mutex_);
    if (held_.contains(holder)) return absl::OkStatus();
  }
  TORPOR_ASSIGN_OR_RETURN(const bool is_held, store_.IsHeldBy(digest, tenant));
  if (!is_held) return absl::NotFoundError(absl::StrCat("no module ", ToHex(digest)));
  MutexLock lock(&mutex_);
  held_.insert(holder);
  return absl::OkStatus();
}

absl::StatusOr<ModuleLibrary::Loaded> ModuleLibrary::Load(const Sha256Digest& digest,
                                                          const std::string& tenant,
                                                          std::span<const std::string> variables,
                                                          bool finds_variables) {
  // A hash alone tells nothing, not even whether the node has the module.
  TORPOR_RETURN_IF_ERROR(CheckHolder(digest, tenant));
  Request request{digest, finds_variables, {}};
  if (!finds_variables) request.variables.assign(variables.begin(), variables.end());
  if (const std::shared_ptr<Slot> slot = SlotOf(request)) return LoadInto(*slot, request);
  TORPOR_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> code, store_.Read(digest));
  TORPOR_ASSIGN_OR_RETURN(std::shared_ptr<LoadedModule> module, LoadCode(request, code));
  return Loaded{std::move(module), false};
}

std::shared_ptr<ModuleLibrary::Slot> ModuleLibrary::SlotOf(const Request& request) {
  MutexLock lock(&mutex_);
  if (unshareable_.contains(request.digest)) return nullptr;
  std::erase_if(slots_, [](const auto& entry) {
    return entry.second.use_count() == 1 && entry.second->module.expired();
  });
  std::shared_ptr<Slot>& slot = slots_[request];
  if (slot == nullptr) slot = std::make_shared<Slot>();
  return slot;
}

absl::StatusOr<ModuleLibrary::Loaded> ModuleLibrary::LoadInto(Slot& slot, const Request& request) {
  MutexLock loading(&slot.loading);
  {
    MutexLock lock(&mutex_);
    if (std::shared_ptr<LoadedModule> module = slot.module.lock()) return Loaded{module, true};
  }
  TORPOR_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> code, store_.Read(request.digest));
  TORPOR_ASSIGN_OR_RETURN(std::shared_ptr<LoadedModule> module, LoadCode(request, code));
  const bool is_shared = !CodeMayUseVariables(code, device_.compute_capability());
  MutexLock lock(&mutex_);
  if (is_shared) {
    slot.module = module;
  } else {
    unshareable_.insert(request.digest);
  }
  return Loaded{std::move(module), is_shared};
}

absl::StatusOr<std::shared_ptr<LoadedModule>> ModuleLibrary::LoadCode(
    const Request& request, std::span<const std::uint8_t> code) const {
  return request.finds_variables ? LoadedModule::LoadFindingVariables(device_, code)
                                 : LoadedModule::Load(device_, code, request.variables);
}

absl::StatusOr<std::shared_ptr<LoadedModule>> ModuleLibrary::LoadUnshared(
    const Sha256Digest& digest, const LoadedModule& like) const {
  std::vector<std::string> variables;
  variables.reserve(like.variables().size());
  for (const auto& [name, variable] : like.variables()) variables.push_back(name);
  TORPOR_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> code, store_.Read(digest));
  return LoadedModule::Load(device_, code, variables);
}

}  // namespace torpor::executor
