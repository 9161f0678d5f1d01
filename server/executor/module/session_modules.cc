#include "server/executor/module/session_modules.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace torpor::executor {
namespace {

constexpr std::size_t kMaxModules = 1u << 16;
constexpr std::size_t kMaxKernels = 1u << 20;
constexpr std::size_t kMaxMoved = 1u << 12;
// Alignment of a variable's place in the block; the block's first kAlignment bytes hold the mark.
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

// Loads a kernel before its first launch. A driver that loads at the launch waits for the context,
// for ever behind a stream that waits for a value. A kernel that cannot be loaded fails when
// launched.
void LoadNow(const Device& device, const LoadedKernel& kernel) {
  device.MakingRoom([&] { return device.driver().FuncLoad(kernel.function); });
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
    absl::StatusOr<ModuleLibrary::Loaded> loaded =
        modules_.size() > kMaxModules
            ? absl::ResourceExhaustedError("the session has too many modules")
            : library_.Load(digest, tenant_, variables, finds_variables);
    if (!loaded.ok()) {
      modules_.erase(id);
      return loaded.status();
    }
    module.loaded = std::move(loaded->module);
    module.digest = digest;
    module.is_shared = loaded->is_shared;
    module.reads_variables = !loaded->is_shared;
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
  if (kernels_.size() >= kMaxKernels) {
    return absl::ResourceExhaustedError("the session has too many kernels");
  }
  LoadNow(device_, *kernel);
  kernels_[id] = {kernel, module->second.loaded, module_id, kernel->default_dynamic_shared,
                  module->second.reads_variables};
  return absl::OkStatus();
}

absl::Status SessionModules::SetAttribute(std::uint64_t kernel, CUfunction_attribute attribute,
                                          int value) {
  const auto found = kernels_.find(kernel);
  if (found == kernels_.end()) {
    return absl::NotFoundError(absl::StrCat("the session has no kernel ", kernel));
  }
  SessionKernel& set = found->second;
  if (!NeedsOwnModule(attribute)) {
    TORPOR_RETURN_IF_ERROR(
        device_.Status(set.module->RaiseSharedLimit(*set.kernel, value), "cuFuncSetAttribute"));
    set.dynamic_shared = value;
    return absl::OkStatus();
  }
  TORPOR_CHECK(!IsShared(set.module_id));
  return device_.Status(set.module->SetAttribute(*set.kernel, attribute, value),
                        "cuFuncSetAttribute");
}

bool SessionModules::IsShared(std::uint64_t id) const {
  const auto module = modules_.find(id);
  return module != modules_.end() && module->second.is_shared;
}

absl::Status SessionModules::TakeOwn(std::uint64_t id, CUstream stream) {
  const auto found = modules_.find(id);
  if (found == modules_.end()) return UnknownModule(id);
  Module& module = found->second;
  TORPOR_RETURN_IF_ERROR(Exchange(id, module));
  if (!BlockIsResident(module)) return absl::OkStatus();
  TORPOR_ASSIGN_OR_RETURN(const bool has_values, BlockHasValues(module, stream));
  return has_values ? CopyVariables(module, /*to_block=*/false, stream) : FillBlock(module, stream);
}

absl::Status SessionModules::Exchange(std::uint64_t id, Module& module) {
  TORPOR_ASSIGN_OR_RETURN(const std::shared_ptr<LoadedModule> own,
                          library_.LoadUnshared(module.digest, *module.loaded));
  // All checks precede the exchange, so that an error changes nothing.
  for (const auto& [kernel_id, kernel] : kernels_) {
    if (kernel.module_id != id) continue;
    LoadedKernel* const same = own->FindKernel(kernel.kernel->entry.name);
    if (same == nullptr) return absl::InternalError("a module loaded again lacks a kernel");
    if (kernel.dynamic_shared != same->default_dynamic_shared) {
      TORPOR_RETURN_IF_ERROR(device_.Status(own->RaiseSharedLimit(*same, kernel.dynamic_shared),
                                            "cuFuncSetAttribute"));
    }
  }
  module.loaded = own;
  module.is_shared = false;
  module.reads_variables = !own->variables().empty();
  for (auto& [kernel_id, kernel] : kernels_) {
    if (kernel.module_id != id) continue;
    kernel.kernel = own->FindKernel(kernel.kernel->entry.name);
    LoadNow(device_, *kernel.kernel);
    kernel.module = own;
    kernel.reads_variables = module.reads_variables;
  }
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
    if (module.is_shared) continue;
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
  if (moved_.size() >= kMaxMoved) {
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

absl::StatusOr<bool> SessionModules::BindGlobals(std::uint64_t id, std::uint64_t address,
                                                 CUstream stream) {
  const auto found = modules_.find(id);
  if (found == modules_.end()) return UnknownModule(id);
  Module& module = found->second;
  const Bytes bytes = BlockBytes(*module.loaded);
  if (bytes == 0) return false;
  if (!image_.Contains(address, bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("the block of module ", id, " is not ", bytes,
                                                   " bytes of the session's memory"));
  }
  module.block = address;
  TORPOR_ASSIGN_OR_RETURN(const bool has_values, BlockHasValues(module, stream));
  if (module.is_shared) return has_values;
  TORPOR_RETURN_IF_ERROR(has_values ? CopyVariables(module, /*to_block=*/false, stream)
                                    : FillBlock(module, stream));
  return false;
}

absl::StatusOr<bool> SessionModules::BlockHasValues(const Module& module, CUstream stream) const {
  const CudaDriver& driver = device_.driver();
  const CUdeviceptr block = image_.Resolve(module.block, BlockBytes(*module.loaded));
  std::uint64_t mark = 0;
  TORPOR_RETURN_IF_ERROR(device_.Status(driver.MemcpyDtoHAsync(&mark, block, sizeof mark, stream),
                                        "reading a module's block"));
  TORPOR_RETURN_IF_ERROR(device_.Status(driver.StreamSynchronize(stream), "cuStreamSynchronize"));
  return mark == kBlockHasValues;
}

absl::Status SessionModules::FillBlock(const Module& module, CUstream stream) {
  image_.MarkDirty();
  const CudaDriver& driver = device_.driver();
  const CUdeviceptr block = image_.Resolve(module.block, BlockBytes(*module.loaded));
  const std::uint64_t mark = kBlockHasValues;
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
    if (!module.is_shared && BlockIsResident(module)) {
      TORPOR_RETURN_IF_ERROR(CopyVariables(module, /*to_block=*/true, stream));
    }
  }
  return absl::OkStatus();
}

absl::Status SessionModules::RestoreVariables(const memory::ExtentSet& resident_before,
                                              CUstream stream) {
  for (auto& [id, module] : modules_) {
    if (!BlockIsResident(module)) continue;
    const Bytes begin = module.block - image_.base();
    if (resident_before.Contains({begin, begin + BlockBytes(*module.loaded)})) continue;
    if (module.is_shared) {
      // Arriving blocks have the host image's content. On another GPU the session may have named a
      // variable.
      if (image_.HostWord(module.block) != kBlockHasValues) continue;
      TORPOR_RETURN_IF_ERROR(Exchange(id, module));
    }
    TORPOR_RETURN_IF_ERROR(CopyVariables(module, /*to_block=*/false, stream));
  }
  return absl::OkStatus();
}

}  // namespace torpor::executor
