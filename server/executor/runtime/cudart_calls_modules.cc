// Modules, kernels and symbols.
#include <driver_types.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/executor/gpu/call_status.h"
#include "server/executor/runtime/cudart_calls.h"

namespace torpor::executor {

using cuda_api::CallFailed;
using cuda_api::CallStatus;

namespace {

CallStatus UnknownKernel(std::uint64_t kernel) {
  return CallFailed(cudaErrorInvalidDeviceFunction,
                    absl::StrCat("the session has no kernel ", kernel));
}

}  // namespace

CallStatus CudartCalls::ModuleUse(const wire::ModuleUse& command) {
  return ToCallStatus(modules_.Load(command.module, command.hash, command.variables,
                                    command.finds_variables != 0, nullptr),
                      "loading a module again");
}

CallStatus CudartCalls::ModuleLoad(const wire::ModuleLoad& command,
                                   wire::ModuleLoadResult& result) {
  const absl::Status status = modules_.Load(command.module, command.hash, command.variables,
                                            command.finds_variables != 0, &result);
  if (absl::IsNotFound(status)) return {};  // found stays 0: the client sends the bytes
  result.found = status.ok() ? 1 : 0;
  return ToCallStatus(status, "loading a module");
}

CallStatus CudartCalls::ModuleUpload(const wire::ModuleUpload& command, wire::ModuleUploadResult&) {
  const std::uint8_t* piece =
      PayloadBytes(command.payload, command.offset, command.bytes, command.data);
  if (piece == nullptr) {
    return CallFailed(cudaErrorInvalidValue, "a piece of a module lies outside its payload");
  }
  // The client may change the window while we hash: the buffer holds our own copy.
  const absl::StatusOr<bool> whole =
      upload_.Add(command.hash, command.total_bytes, command.at, {piece, command.bytes});
  if (!whole.ok()) return ToCallStatus(whole.status(), "uploading a module");
  if (!*whole) return {};
  const absl::Status stored = library_.Store(command.hash, upload_.bytes());
  upload_.Clear();
  return ToCallStatus(stored, "storing a module");
}

CallStatus CudartCalls::ModuleUnload(const wire::ModuleUnload& command) {
  if (CallStatus arrived = AwaitArrival("unloading a module"); !arrived.ok()) return arrived;
  const CUresult drained = streams_.Synchronize();
  if (drained != CUDA_SUCCESS) return Outcome(drained, "unloading a module");
  return ToCallStatus(modules_.Unload(command.module), "unloading a module");
}

CallStatus CudartCalls::ModuleBindGlobals(const wire::ModuleBindGlobals& command) {
  memory_.image().touches().UseAll();
  CUstream stream = nullptr;
  const CUresult used = streams_.Use(StreamSet::kLegacy, stream);
  if (used != CUDA_SUCCESS) return Outcome(used, "binding variables");
  const absl::StatusOr<bool> is_own = modules_.BindGlobals(command.module, command.address, stream);
  if (!is_own.ok()) return ToCallStatus(is_own.status(), "binding variables");
  return *is_own ? TakeOwnModule(command.module, "binding variables") : CallStatus();
}

CallStatus CudartCalls::TakeOwnModule(std::uint64_t module, std::string_view what) {
  if (!modules_.IsShared(module)) return {};
  if (CallStatus arrived = AwaitArrival(what); !arrived.ok()) return arrived;
  CUresult result = streams_.Synchronize();
  CUstream stream = nullptr;
  if (result == CUDA_SUCCESS) result = streams_.Use(StreamSet::kLegacy, stream);
  if (result != CUDA_SUCCESS) return Outcome(result, what);
  return ToCallStatus(modules_.TakeOwn(module, stream), what);
}

CallStatus CudartCalls::KernelCreate(const wire::KernelCreate& command) {
  const absl::Status created = modules_.CreateKernel(command.kernel, command.module, command.name);
  parameters_.resize(modules_.max_parameters());
  return ToCallStatus(created, {});
}

CallStatus CudartCalls::FuncSetAttribute(const wire::FuncSetAttribute& command) {
  const SessionKernel* const kernel = modules_.FindKernel(command.kernel);
  if (kernel == nullptr) return UnknownKernel(command.kernel);
  if (command.attribute < 0 || command.attribute >= CU_FUNC_ATTRIBUTE_MAX) {
    return CallFailed(cudaErrorInvalidValue,
                      absl::StrCat("kernels have no attribute ", command.attribute));
  }
  const auto attribute = static_cast<CUfunction_attribute>(command.attribute);
  if (SessionModules::NeedsOwnModule(attribute)) {
    CallStatus own = TakeOwnModule(kernel->module_id, "cudaFuncSetAttribute");
    if (!own.ok()) return own;
  }
  return ToCallStatus(modules_.SetAttribute(command.kernel, attribute, command.value),
                      "cudaFuncSetAttribute");
}

CallStatus CudartCalls::FuncGetAttributes(const wire::FuncGetAttributes& command,
                                          wire::FuncGetAttributesResult& result) {
  const SessionKernel* kernel = modules_.FindKernel(command.kernel);
  if (kernel == nullptr) return UnknownKernel(command.kernel);
  result.values.assign(CU_FUNC_ATTRIBUTE_MAX, 0);
  for (int i = 0; i < CU_FUNC_ATTRIBUTE_MAX; ++i) {
    // A driver older than our headers does not know the newest attributes.
    driver().FuncGetAttribute(&result.values[static_cast<std::size_t>(i)],
                              static_cast<CUfunction_attribute>(i), kernel->kernel->function);
  }
  result.values[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = kernel->dynamic_shared;
  return {};
}

CallStatus CudartCalls::OccupancyMaxActiveBlocks(const wire::OccupancyMaxActiveBlocks& command,
                                                 wire::OccupancyMaxActiveBlocksResult& result) {
  const SessionKernel* kernel = modules_.FindKernel(command.kernel);
  if (kernel == nullptr) return UnknownKernel(command.kernel);
  return Outcome(
      driver().OccupancyMaxActiveBlocks(&result.blocks, kernel->kernel->function,
                                        command.block_size, command.dynamic_shared, command.flags),
      "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
}

CallStatus CudartCalls::LaunchKernel(const wire::LaunchKernel& command) {
  const SessionKernel* found = modules_.FindKernel(command.kernel);
  if (found == nullptr) return UnknownKernel(command.kernel);
  const LoadedKernel& kernel = *found->kernel;
  if (command.parameters.size() < kernel.parameter_bytes) {
    return CallFailed(
        cudaErrorInvalidValue,
        absl::StrCat("kernel ", kernel.entry.name, " takes ", kernel.parameter_bytes,
                     " bytes of parameters, ", command.parameters.size(), " were sent"));
  }
  if (memory_.image().touches().is_watching()) UseParameters(*found, command.parameters);
  CUstream stream = nullptr;
  CUresult result = streams_.Use(command.stream, stream);
  if (result != CUDA_SUCCESS) return Outcome(result, "launching a kernel");
  // The driver only reads them.
  const std::vector<wire::KernelParameter>& layout = kernel.entry.parameters;
  const bool has_moved = memory_.is_translating() || has_moved_objects();
  auto* bytes = has_moved ? TranslatedParameters(layout, command.parameters)
                          : const_cast<std::uint8_t*>(command.parameters.data());
  for (std::size_t i = 0; i < layout.size(); ++i) parameters_[i] = bytes + layout[i].offset;

  const auto& [grid_x, grid_y, grid_z] = command.grid;
  const auto& [block_x, block_y, block_z] = command.block;
  memory_.image().MarkDirty();
  result = (command.flags & wire::kLaunchCooperative) != 0
               ? driver().LaunchCooperativeKernel(kernel.function, grid_x, grid_y, grid_z, block_x,
                                                  block_y, block_z, command.shared_bytes, stream,
                                                  parameters_.data())
               : driver().LaunchKernel(kernel.function, grid_x, grid_y, grid_z, block_x, block_y,
                                       block_z, command.shared_bytes, stream, parameters_.data(),
                                       nullptr);
  if (result == CUDA_SUCCESS) return {};
  return Outcome(result, "launching kernel " + kernel.entry.name);
}

void CudartCalls::UseParameters(const SessionKernel& kernel,
                                std::span<const std::uint8_t> parameters) const {
  memory_.UseParameters(parameters);
  if (!memory_.image().arrival().is_pending()) return;
  // A variable, of this module or of another to which there is a pointer, may hold addresses; and a
  // texture's value looks like any number.
  const bool reads_more =
      kernel.reads_variables || !textures_.empty() || modules_.PointToVariable(parameters);
  if (reads_more) memory_.image().touches().UseAll();
}

CallStatus CudartCalls::AwaitArrival(std::string_view what) const {
  return ToCallStatus(memory_.image().arrival().Wait(), what);
}

std::uint64_t CudartCalls::Translated(std::uint64_t word) const {
  const std::uint64_t known_here =
      has_moved_objects() ? textures_.Translate(modules_.Translate(word)) : word;
  return memory_.is_translating() && known_here == word ? memory_.Translate(word) : known_here;
}

std::uint8_t* CudartCalls::TranslatedParameters(const std::vector<wire::KernelParameter>& layout,
                                                std::span<const std::uint8_t> parameters) {
  translated_.assign(wire::Padded(parameters.size()) / sizeof(std::uint64_t), 0);
  if (!parameters.empty()) {
    std::memcpy(translated_.data(), parameters.data(), parameters.size());
  }
  if (memory_.is_translating()) memory_.RefreshAddresses();
  // Pointers and objects are aligned to their size, those inside structures too. Two numbers of
  // four bytes that are parameters by themselves are none, whatever they look like together.
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  for (const wire::KernelParameter& parameter : layout) {
    const std::size_t end = std::size_t{parameter.offset} + parameter.bytes;
    for (std::size_t i = wire::Padded(parameter.offset) / kWord; (i + 1) * kWord <= end; ++i) {
      translated_[i] = Translated(translated_[i]);
    }
  }
  return reinterpret_cast<std::uint8_t*>(translated_.data());
}

CallStatus CudartCalls::UseVariable(std::uint64_t module, std::string_view name,
                                    const LoadedVariable*& variable) {
  variable = modules_.FindVariable(module, name);
  if (variable == nullptr) {
    return CallFailed(
        cudaErrorInvalidSymbol,
        absl::StrCat("the module has no variable ", absl::string_view(name.data(), name.size())));
  }
  if (CallStatus own = TakeOwnModule(module, "using a variable"); !own.ok()) return own;
  variable = modules_.FindVariable(module, name);
  return {};
}

CallStatus CudartCalls::UseVariableBytes(std::uint64_t module, std::string_view name,
                                         std::uint64_t offset, Bytes bytes, CUdeviceptr& address) {
  memory_.image().touches().UseAll();
  const LoadedVariable* variable = nullptr;
  if (CallStatus used = UseVariable(module, name, variable); !used.ok()) return used;
  if (offset > variable->bytes || bytes > variable->bytes - offset) {
    return CallFailed(cudaErrorInvalidSymbol, absl::StrCat("a variable of ", variable->bytes,
                                                           " bytes is copied beyond them"));
  }
  address = variable->address + offset;
  return {};
}

CallStatus CudartCalls::SymbolPublish(const wire::SymbolPublish& command) {
  const LoadedVariable* variable = nullptr;
  CallStatus used = UseVariable(command.module, command.variable, variable);
  if (!used.ok()) return used;
  return ToCallStatus(modules_.Publish(command.module, command.variable, command.address),
                      "address of a variable");
}

CallStatus CudartCalls::SymbolAddress(const wire::SymbolAddress& command,
                                      wire::SymbolAddressResult& result) {
  const LoadedVariable* variable = nullptr;
  CallStatus used = UseVariable(command.module, command.variable, variable);
  if (!used.ok()) return used;
  result.address = variable->address;
  result.bytes = variable->bytes;
  // Whoever knows the address may write there.
  memory_.image().MarkDirty();
  return {};
}

}  // namespace torpor::executor
