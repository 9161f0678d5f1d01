// Kernel launches; compiled twice, see default_stream.h.
#include <algorithm>
#include <vector>

#include "emulator/driver/api/api.h"
#include "emulator/driver/api/default_stream.h"
#include "emulator/driver/submission/launch.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

extern "C" {

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                void** values, void** extra) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    return Launch(target, function,
                  {.grid = {grid_x, grid_y, grid_z},
                   .block = {block_x, block_y, block_z},
                   .dynamic_shared_bytes = shared_bytes},
                  values, extra);
  });
}

// Unknown attributes are hints and ignored.
CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** values,
                                  void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUevent> events;
  LaunchRequest request = RequestOf(*config);
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config->attrs[i];
    switch (attribute.id) {
      // Later than asked for is legal: both are recorded behind the kernel.
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        events.push_back(attribute.value.programmaticEvent.event);
        break;
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        events.push_back(attribute.value.launchCompletionEvent.event);
        break;
      default:
        break;  // hints
    }
  }
  return OnStream(OrDefault(config->hStream), [&](const StreamTarget& target) {
    const auto& table = Driver::Get().events();
    if (std::any_of(events.begin(), events.end(),
                    [&](CUevent event) { return table.Get(event) == nullptr; })) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    const CUresult launched = Launch(target, function, request, values, extra);
    if (launched != CUDA_SUCCESS) return launched;
    for (CUevent event : events) target.context->Record(target.stream, *table.Get(event));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x,
                                           unsigned int grid_y, unsigned int grid_z,
                                           unsigned int block_x, unsigned int block_y,
                                           unsigned int block_z, unsigned int shared_bytes,
                                           CUstream stream, void** values) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    return Launch(target, function,
                  {.grid = {grid_x, grid_y, grid_z},
                   .block = {block_x, block_y, block_z},
                   .dynamic_shared_bytes = shared_bytes,
                   .cooperative = true},
                  values, nullptr);
  });
}

}  // extern "C"
