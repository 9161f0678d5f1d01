#include "server/executor/runtime/module_calls.h"

#include <driver_types.h>

#include "absl/strings/str_cat.h"
#include "server/executor/gpu/call_status.h"
#include "server/executor/runtime/launch_attributes.h"
#include "server/executor/runtime/unknown_kernel.h"

namespace torpor::executor {

using cuda_api::CallFailed;
using cuda_api::CallStatus;

CallStatus ModuleCalls::ModuleUse(const wire::ModuleUse& command) {
  return ToCallStatus(parts_.modules.Load(command.module, command.hash, command.variables,
                                          command.finds_variables != 0, nullptr),
                      "loading a module again");
}

CallStatus ModuleCalls::ModuleLoad(const wire::ModuleLoad& command,
                                   wire::ModuleLoadResult& result) {
  const absl::Status status = parts_.modules.Load(command.module, command.hash, command.variables,
                                                  command.finds_variables != 0, &result);
  if (absl::IsNotFound(status)) return {};  // found stays 0: the client sends the bytes
  result.found = status.ok() ? 1 : 0;
  return ToCallStatus(status, "loading a module");
}

CallStatus ModuleCalls::ModuleUpload(const wire::ModuleUpload& command, wire::ModuleUploadResult&) {
  const std::uint8_t* piece =
      parts_.memory.Payload(command.payload, command.offset, command.bytes, command.data);
  if (piece == nullptr) {
    return CallFailed(cudaErrorInvalidValue, "a piece of a module lies outside its payload");
  }
  // The client may change the window while we hash: the buffer holds our own copy.
  const absl::StatusOr<bool> whole =
      upload_.Add(command.hash, command.total_bytes, command.at, {piece, command.bytes});
  if (!whole.ok()) return ToCallStatus(whole.status(), "uploading a module");
  if (!*whole) return {};
  const absl::Status stored = parts_.modules.Store(command.hash, upload_.bytes());
  upload_.Clear();
  return ToCallStatus(stored, "storing a module");
}

CallStatus ModuleCalls::ModuleUnload(const wire::ModuleUnload& command) {
  constexpr char kWhat[] = "unloading a module";
  CallStatus arrived = ToCallStatus(parts_.image.arrival().Wait(), kWhat);
  if (!arrived.ok()) return arrived;
  const CUresult drained = parts_.streams.Synchronize();
  if (drained != CUDA_SUCCESS) return ToCallStatus(parts_.device.driver(), drained, kWhat);
  return ToCallStatus(parts_.modules.Unload(command.module), kWhat);
}

CallStatus ModuleCalls::ModuleBindGlobals(const wire::ModuleBindGlobals& command) {
  constexpr char kWhat[] = "binding variables";
  parts_.image.touches().UseAll();
  CUstream stream = nullptr;
  const CUresult used = parts_.streams.Use(StreamSet::kLegacy, stream);
  if (used != CUDA_SUCCESS) return ToCallStatus(parts_.device.driver(), used, kWhat);
  const absl::StatusOr<bool> is_own =
      parts_.modules.BindGlobals(command.module, command.address, stream);
  if (!is_own.ok()) return ToCallStatus(is_own.status(), kWhat);
  return *is_own ? parts_.ownership.TakeOwn(command.module, kWhat) : CallStatus();
}

CallStatus ModuleCalls::KernelCreate(const wire::KernelCreate& command) {
  return ToCallStatus(parts_.modules.CreateKernel(command.kernel, command.module, command.name),
                      {});
}

CallStatus ModuleCalls::FuncSetAttribute(const wire::FuncSetAttribute& command) {
  const SessionKernel* const kernel = parts_.modules.FindKernel(command.kernel);
  if (kernel == nullptr) return UnknownKernel(command.kernel);
  if (command.attribute < 0 || command.attribute >= CU_FUNC_ATTRIBUTE_MAX) {
    return CallFailed(cudaErrorInvalidValue,
                      absl::StrCat("kernels have no attribute ", command.attribute));
  }
  const auto attribute = static_cast<CUfunction_attribute>(command.attribute);
  if (SessionModules::NeedsOwnModule(attribute)) {
    CallStatus own = parts_.ownership.TakeOwn(kernel->module_id, "cudaFuncSetAttribute");
    if (!own.ok()) return own;
  }
  return ToCallStatus(parts_.modules.SetAttribute(command.kernel, attribute, command.value),
                      "cudaFuncSetAttribute");
}

CallStatus ModuleCalls::FuncGetAttributes(const wire::FuncGetAttributes& command,
                                          wire::FuncGetAttributesResult& result) {
  const SessionKernel* kernel = parts_.modules.FindKernel(command.kernel);
  if (kernel == nullptr) return UnknownKernel(command.kernel);
  result.values.assign(CU_FUNC_ATTRIBUTE_MAX, 0);
  for (int i = 0; i < CU_FUNC_ATTRIBUTE_MAX; ++i) {
    // A driver older than our headers does not know the newest attributes.
    parts_.device.driver().FuncGetAttribute(&result.values[static_cast<std::size_t>(i)],
                                            static_cast<CUfunction_attribute>(i),
                                            kernel->kernel->function);
  }
  result.values[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = kernel->dynamic_shared;
  return {};
}

CallStatus ModuleCalls::OccupancyMaxActiveBlocks(const wire::OccupancyMaxActiveBlocks& command,
                                                 wire::OccupancyMaxActiveBlocksResult& result) {
  const SessionKernel* kernel = parts_.modules.FindKernel(command.kernel);
  if (kernel == nullptr) return UnknownKernel(command.kernel);
  const CudaDriver& driver = parts_.device.driver();
  return ToCallStatus(
      driver,
      driver.OccupancyMaxActiveBlocks(&result.blocks, kernel->kernel->function, command.block_size,
                                      command.dynamic_shared, command.flags),
      "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
}

CallStatus ModuleCalls::OccupancyClusters(const wire::OccupancyClusters& command,
                                          wire::OccupancyClustersResult& result) {
  const SessionKernel* kernel = parts_.modules.FindKernel(command.kernel);
  if (kernel == nullptr) return UnknownKernel(command.kernel);
  const CudaDriver& driver = parts_.device.driver();
  const LaunchAttributes attributes(command.grid, command.block, command.shared_bytes,
                                    command.flags, nullptr);
  const auto ask = command.largest != 0 ? driver.OccupancyMaxPotentialClusterSize
                                        : driver.OccupancyMaxActiveClusters;
  return ToCallStatus(driver, ask(&result.count, kernel->kernel->function, &attributes.config()),
                      "the occupancy of clusters");
}

}  // namespace torpor::executor
