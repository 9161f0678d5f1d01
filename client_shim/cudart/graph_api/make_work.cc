#include "client_shim/cudart/graph_api/make_work.h"

#include <array>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/copy/memset.h"
#include "client_shim/cudart/graph/graph.h"
#include "client_shim/cudart/launch/launch.h"
#include "client_shim/cudart/launch/packed_arguments.h"
#include "client_shim/cudart/stream/events.h"

namespace torpor::shim {
namespace {

// Packs the arguments, or copies arguments packed by the program (`extra`).
cudaError_t ReadParameters(const cudaKernelNodeParams& node, const ClientKernel& kernel,
                           std::vector<std::uint8_t>& parameters) {
  if (node.extra) {
    PackedArguments packed;
    if (!ReadPackedArguments(node.extra, packed)) return cudaErrorInvalidValue;
    parameters.assign(packed.bytes, packed.bytes + packed.count);
    return parameters.size() >= kernel.parameter_bytes ? cudaSuccess : cudaErrorInvalidValue;
  }
  std::array<std::uint8_t, kMaxParameterBytes> packed;
  std::size_t filled = 0;
  TORPOR_TRY(PackArguments(kernel, node.kernelParams, packed, filled));
  parameters.assign(packed.begin(), packed.begin() + filled);
  return cudaSuccess;
}

}  // namespace

cudaError_t MakeKernelWork(const cudaKernelNodeParams& parameters, NodeWork& work) {
  KernelWork kernel;
  TORPOR_TRY(Begin());
  ClientKernel* used = nullptr;
  TORPOR_TRY(UseKernel(parameters.func, used));
  kernel.kernel = Hold(*used);
  kernel.grid = parameters.gridDim;
  kernel.block = parameters.blockDim;
  kernel.shared_bytes = parameters.sharedMemBytes;
  TORPOR_TRY(CheckLaunch(*kernel.kernel,
                         {kernel.grid, kernel.block, kernel.shared_bytes, nullptr, kernel.flags}));
  TORPOR_TRY(ReadParameters(parameters, *kernel.kernel, kernel.parameters));
  work = std::move(kernel);
  return cudaSuccess;
}

cudaError_t MakeFillWork(const cudaMemsetParams& parameters, NodeWork& work) {
  TORPOR_TRY(Begin());
  const unsigned element = parameters.elementSize;
  if (element != 1 && element != 2 && element != 4) return cudaErrorInvalidValue;
  if (parameters.width == 0 || parameters.height == 0) return cudaErrorInvalidValue;
  FillWork fill{parameters};
  if (fill.parameters.height == 1) fill.parameters.pitch = 0;
  std::uint64_t ignored = 0;
  TORPOR_TRY(CheckFill(fill.parameters, ignored));
  work = fill;
  return cudaSuccess;
}

cudaError_t MakeHostWork(const cudaHostNodeParams& parameters, NodeWork& work) {
  if (!parameters.fn) return cudaErrorInvalidValue;
  work = HostWork{parameters};
  return cudaSuccess;
}

template <typename EventWork>
cudaError_t MakeEventWork(cudaEvent_t event, NodeWork& work) {
  TORPOR_TRY(CheckEvent(event));
  work = EventWork{event};
  return cudaSuccess;
}
template cudaError_t MakeEventWork<EventRecordWork>(cudaEvent_t event, NodeWork& work);
template cudaError_t MakeEventWork<EventWaitWork>(cudaEvent_t event, NodeWork& work);

cudaError_t MakeChildWork(cudaGraph_t handle, NodeWork& work) {
  const Graph* const graph = Graph::Find(handle);
  if (!graph) return cudaErrorInvalidValue;
  work = ChildWork{graph->Clone()};
  return cudaSuccess;
}

}  // namespace torpor::shim
