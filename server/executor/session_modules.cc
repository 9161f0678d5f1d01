#include "server/executor/session_modules.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace torpor::executor {
namespace {

constexpr std::size_t kMostModules = 1u << 16;
constexpr std::size_t kMostKernels = 1u << 20;
constexpr std::size_t kMostMoved = 1u << 12;
// Alignment of a variable's place in the block, and the block's first bytes, which are ours.
constexpr Bytes kAlignment = 16;
constexpr std::uint64_t kBlockHasValues = 0x7365'756c'6176;  // "values"

// Calls visit(name, variable, offset in the block) in the order of the names.
template <typename Visitor>
Bytes LayOut(const LoadedModule& module, Visitor visit) {
  Bytes at = kAlignment;
  for (const auto& [name, variable] : module.variables()) {
    visit(name, variable, at);
    at += RoundUp(variable.bytes, kAlignment);
  }
  return at;
}

absl::Status UnknownModule(std::uint64_t id) {
  return absl::NotFoundError(absl::StrCat("the session has no module ", id));
}

}  // namespace

Bytes SessionModules::BlockBytes(const LoadedModule& module) {
  if (module.variables().empty()) return 0;
  return LayOut(module, [](const std::string&, const LoadedVariable&, Bytes) {});
}

absl::Status SessionModules::Load(std::uint64_t id, const Sha256Digest& digest,
                                  const std::vector<std::string>& variables, bool finds_variables,
                                  wire::ModuleLoadResult* result) {
  Module& module = modules_[id];
  if (module.loaded == nullptr) {
    absl::StatusOr<std::shared_ptr<LoadedModule>> loaded =
        modules_.size() > kMostModules
            ? absl::ResourceExhaustedError("the session has too many modules")
            : library_.Load(digest, variables, finds_variables);
    if (!loaded.ok()) {
      modules_.erase(id);
      return loaded.status();
    }
    module.loaded = *std::move(loaded);
    module.digest = digest;
    module.is_shared = variables.empty() && !finds_variables;
  }
  if (result == nullptr) return absl::OkStatus();
  for (const auto& [name, kernel] : module.loaded->kernels()) {
    result->kernels.push_back(kernel.entry);
  }
  result->globals_bytes = BlockBytes(*module.loaded);
  return absl::OkStatus();
}

absl::Status SessionModules::Unload(std::uint64_t id) {
  if (modules_.erase(id) == 0) return UnknownModule(id);
  absl::erase_if(kernels_, [id](const auto& entry) { return entry.second.module_id == id; });
  std::erase_if(moved_, [id](const Moved& moved) { return moved.module_id == id; });
  return absl::OkStatus();
}

absl::Status SessionModules::CreateKernel(std::uint64_t id, std::uint64_t module_id,
                                          std::string_view name) {
  const auto module = modules_.find(module_id);
  if (module == modules_.end()) return UnknownModule(module_id);
  LoadedKernel* kernel = module->second.loaded->FindKernel(name);
  if (kernel == nullptr) {
    return absl::NotFoundError(absl::StrCat("module ", module_id, " has no kernel ",
                                            absl::string_view(name.data(), name.size())));
  }
  if (kernels_.size() >= kMostKernels) {
    return absl::ResourceExhaustedError("the session has too many kernels");
  }
  kernels_[id] = {kernel, module->second.loaded, module_id, kernel->default_dynamic_shared};
  most_parameters_ = std::max(most_parameters_, kernel->entry.parameters.size());
  return absl::OkStatus();
}

bool SessionModules::NeedsOwnModule(std::uint64_t kernel, CUfunction_attribute attribute) const {
  const auto found = kernels_.find(kernel);
  return found != kernels_.end() && attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
         modules_.at(found->second.module_id).is_shared;
}

absl::Status SessionModules::SetAttribute(std::uint64_t kernel, CUfunction_attribute attribute,
                                          int value) {
  const auto found = kernels_.find(kernel);
  if (found == kernels_.end()) {
    return absl::NotFoundError(absl::StrCat("the session has no kernel ", kernel));
  }
  if (NeedsOwnModule(kernel, attribute)) {
    TORPOR_RETURN_IF_ERROR(TakeOwnModule(found->second.module_id));
  }
  SessionKernel& owned = found->second;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    return device_.Status(owned.module->SetAttribute(*owned.kernel, attribute, value),
                          "cuFuncSetAttribute");
  }
  TORPOR_RETURN_IF_ERROR(
      device_.Status(owned.module->RaiseSharedLimit(*owned.kernel, value), "cuFuncSetAttribute"));
  owned.dynamic_shared = value;
  return absl::OkStatus();
}

absl::Status SessionModules::TakeOwnModule(std::uint64_t id) {
  Module& module = modules_.at(id);
  TORPOR_ASSIGN_OR_RETURN(const std::shared_ptr<LoadedModule> own,
                          library_.LoadUnshared(module.digest));
  for (auto& [kernel_id, kernel] : kernels_) {
    if (kernel.module_id != id) continue;
    LoadedKernel* const same = own->FindKernel(kernel.kernel->entry.name);
    if (same == nullptr) return absl::InternalError("a module loaded again lacks a kernel");
    if (kernel.dynamic_shared != same->default_dynamic_shared) {
      TORPOR_RETURN_IF_ERROR(device_.Status(own->RaiseSharedLimit(*same, kernel.dynamic_shared),
                                            "cuFuncSetAttribute"));
    }
    kernel.kernel = same;
    kernel.module = own;
  }
  module.loaded = own;
  module.is_shared = false;
  return absl::OkStatus();
}

const LoadedVariable* SessionModules::FindVariable(std::uint64_t module_id,
                                                   std::string_view name) const {
  const auto module = modules_.find(module_id);
  if (module == modules_.end()) return nullptr;
  const auto& variables = module->second.loaded->variables();
  const auto found = variables.find(name);
  return found == variables.end() ? nullptr : &found->second;
}

bool SessionModules::OwnsVariable(std::uint64_t address, Bytes bytes) const {
  for (const auto& [id, module] : modules_) {
    for (const auto& [name, variable] : module.loaded->variables()) {
      const std::uint64_t offset = address - variable.address;
      if (address >= variable.address && offset <= variable.bytes &&
          bytes <= variable.bytes - offset) {
        return true;
      }
    }
  }
  return false;
}

bool SessionModules::PointToVariable(std::span<const std::uint8_t> parameters) const {
  std::uint64_t word = 0;
  for (; parameters.size() >= sizeof word; parameters = parameters.subspan(sizeof word)) {
    std::memcpy(&word, parameters.data(), sizeof word);
    if (OwnsVariable(Translate(word), 1)) return true;
  }
  return false;
}

absl::Status SessionModules::Publish(std::uint64_t module_id, std::string_view name,
                                     std::uint64_t address) {
  const LoadedVariable* variable = FindVariable(module_id, name);
  if (variable == nullptr) {
    return absl::NotFoundError(absl::StrCat("module ", module_id, " has no variable ",
                                            absl::string_view(name.data(), name.size())));
  }
  if (variable->address == address) return absl::OkStatus();
  if (moved_.size() >= kMostMoved) {
    return absl::ResourceExhaustedError("the session knows too many addresses of variables");
  }
  moved_.push_back({module_id, address, variable->address, variable->bytes});
  return absl::OkStatus();
}

std::uint64_t SessionModules::Translate(std::uint64_t address) const {
  for (const Moved& moved : moved_) {
    if (address - moved.published < moved.bytes) return moved.here + (address - moved.published);
  }
  return address;
}

absl::Status SessionModules::BindGlobals(std::uint64_t id, std::uint64_t address, CUstream stream) {
  const auto found = modules_.find(id);
  if (found == modules_.end()) return UnknownModule(id);
  Module& module = found->second;
  const Bytes bytes = BlockBytes(*module.loaded);
  if (bytes == 0) return absl::OkStatus();
  const CUdeviceptr block = image_.Resolve(address, bytes);
  if (block == 0) {
    return absl::InvalidArgumentError(absl::StrCat("the block of module ", id, " is not ", bytes,
                                                   " bytes of the session's memory"));
  }
  module.block = address;
  const CudaDriver& driver = device_.driver();
  std::uint64_t mark = 0;
  TORPOR_RETURN_IF_ERROR(device_.Status(driver.MemcpyDtoHAsync(&mark, block, sizeof mark, stream),
                                        "reading a module's block"));
  TORPOR_RETURN_IF_ERROR(device_.Status(driver.StreamSynchronize(stream), "cuStreamSynchronize"));
  if (mark == kBlockHasValues) return CopyVariables(module, /*to_block=*/false, stream);
  image_.MarkDirty();
  mark = kBlockHasValues;
  TORPOR_RETURN_IF_ERROR(device_.Status(driver.MemcpyHtoDAsync(block, &mark, sizeof mark, stream),
                                        "marking a module's block"));
  TORPOR_RETURN_IF_ERROR(CopyVariables(module, /*to_block=*/true, stream));
  // `mark` must outlive the copy.
  return device_.Status(driver.StreamSynchronize(stream), "cuStreamSynchronize");
}

bool SessionModules::BlockIsResident(const Module& module) const {
  return module.block != 0 && image_.Contains(module.block, BlockBytes(*module.loaded));
}

absl::Status SessionModules::CopyVariables(const Module& module, bool to_block,
                                           CUstream stream) const {
  absl::Status status;
  const CUdeviceptr begin = image_.Resolve(module.block, BlockBytes(*module.loaded));
  LayOut(*module.loaded, [&](const std::string&, const LoadedVariable& variable, Bytes at) {
    const CUdeviceptr block = begin + at;
    if (!status.ok() || variable.bytes == 0) return;
    status = device_.Status(device_.driver().MemcpyDtoDAsync(to_block ? block : variable.address,
                                                             to_block ? variable.address : block,
                                                             variable.bytes, stream),
                            "copying a module's variable");
  });
  return status;
}

absl::Status SessionModules::SaveVariables(CUstream stream) const {
  for (const auto& [id, module] : modules_) {
    if (BlockIsResident(module)) {
      TORPOR_RETURN_IF_ERROR(CopyVariables(module, /*to_block=*/true, stream));
    }
  }
  return absl::OkStatus();
}

absl::Status SessionModules::RestoreVariables(const memory::ExtentSet& resident_before,
                                              CUstream stream) const {
  for (const auto& [id, module] : modules_) {
    if (!BlockIsResident(module)) continue;
    const Bytes begin = module.block - image_.base();
    if (resident_before.Contains({begin, begin + BlockBytes(*module.loaded)})) continue;
    TORPOR_RETURN_IF_ERROR(CopyVariables(module, /*to_block=*/false, stream));
  }
  return absl::OkStatus();
}

}  // namespace torpor::executor
