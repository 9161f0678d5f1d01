#include "server/executor/runtime/launch_calls.h"

#include <driver_types.h>

#include "absl/strings/str_cat.h"
#include "server/executor/gpu/call_status.h"
#include "server/executor/runtime/launch_attributes.h"
#include "server/executor/runtime/unknown_kernel.h"

namespace torpor::executor {

using cuda_api::CallStatus;

CallStatus LaunchCalls::LaunchKernel(const wire::LaunchKernel& command) {
  const SessionKernel* found = modules_.FindKernel(command.kernel);
  if (found == nullptr) return UnknownKernel(command.kernel);
  const LoadedKernel& kernel = *found->kernel;
  if (command.parameters.size() < kernel.parameter_bytes) {
    return cuda_api::CallFailed(
        cudaErrorInvalidValue,
        absl::StrCat("kernel ", kernel.entry.name, " takes ", kernel.parameter_bytes,
                     " bytes of parameters, ", command.parameters.size(), " were sent"));
  }
  if (image_.touches().is_watching()) parameters_.NoteUse(*found, command.parameters);
  const CudaDriver& driver = device_.driver();
  CUstream stream = nullptr;
  CUresult result = streams_.Use(command.stream, stream);
  if (result != CUDA_SUCCESS) return ToCallStatus(driver, result, "launching a kernel");
  const std::vector<wire::KernelParameter>& layout = kernel.entry.parameters;
  void** const addresses = AddressesIn(parameters_.OnThisGpu(layout, command.parameters), layout);

  image_.MarkDirty();
  result = device_.MakingRoom([&] { return Launch(command, kernel.function, stream, addresses); });
  if (result == CUDA_SUCCESS) return {};
  return ToCallStatus(driver, result, "launching kernel " + kernel.entry.name);
}

CUresult LaunchCalls::Launch(const wire::LaunchKernel& command, CUfunction function,
                             CUstream stream, void** addresses) const {
  const CudaDriver& driver = device_.driver();
  if (command.flags != 0) {
    const LaunchAttributes attributes(command.grid, command.block, command.shared_bytes,
                                      command.flags, stream);
    return driver.LaunchKernelEx(&attributes.config(), function, addresses, nullptr);
  }
  const auto& [grid_x, grid_y, grid_z] = command.grid;
  const auto& [block_x, block_y, block_z] = command.block;
  return driver.LaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                             command.shared_bytes, stream, addresses, nullptr);
}

void** LaunchCalls::AddressesIn(std::uint8_t* bytes,
                                const std::vector<wire::KernelParameter>& layout) {
  if (addresses_.size() < layout.size()) addresses_.resize(layout.size());
  for (std::size_t i = 0; i < layout.size(); ++i) addresses_[i] = bytes + layout[i].offset;
  return addresses_.data();
}

}  // namespace torpor::executor
