#include "client_shim/cudart/graph/make_work.h"

#include <array>

#include "client_shim/cudart/entry.h"
#include "client_shim/cudart/events.h"
#include "client_shim/cudart/graph/graph.h"
#include "client_shim/cudart/graph/graph_memory.h"
#include "client_shim/cudart/graph/linear_volume.h"
#include "client_shim/cudart/launch.h"
#include "client_shim/cudart/memset.h"
#include "client_shim/cudart/packed_arguments.h"

namespace torpor::shim {
namespace {

cudaError_t ReadParameters(const cudaKernelNodeParams& node, const Kernel& kernel,
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
  Kernel* used = nullptr;
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

cudaError_t MakeCopyWork(const cudaMemcpy3DParms& parameters, NodeWork& work) {
  TORPOR_TRY(Begin());
  LinearVolume volume;
  Route route;
  TORPOR_TRY(ReadCopy(parameters, volume, route));
  work = CopyWork{parameters};
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

cudaError_t MakeAllocationWork(cudaMemAllocNodeParams& parameters, NodeWork& work) {
  TORPOR_TRY(Begin());
  const bool is_plain = parameters.poolProps.allocType == cudaMemAllocationTypePinned &&
                        parameters.poolProps.handleTypes == cudaMemHandleTypeNone &&
                        parameters.poolProps.location.type == cudaMemLocationTypeDevice;
  if (!is_plain) return cudaErrorInvalidValue;
  const int device = parameters.poolProps.location.id;
  if (!Core().OfDevice(device)) return cudaErrorInvalidDevice;
  const CoreScope scope;
  UseDevice(device);
  TORPOR_TRY(Core().Start());
  AllocationWork allocation;
  TORPOR_TRY(GraphMemory::Allocate(parameters.bytesize, allocation.memory));
  parameters.dptr = reinterpret_cast<void*>(allocation.memory->address());
  allocation.parameters = parameters;
  work = std::move(allocation);
  return cudaSuccess;
}

cudaError_t MakeFreeWork(void* address, NodeWork& work) {
  if (!GraphMemory::Find(Address(address))) return cudaErrorInvalidValue;
  work = FreeWork{address};
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

CopyWork LinearCopy(void* to, const void* from, std::uint64_t bytes, cudaMemcpyKind kind) {
  return PitchedCopy(to, from, {bytes, bytes, bytes, 1}, kind);
}

CopyWork PitchedCopy(void* to, const void* from, const Rows& rows, cudaMemcpyKind kind) {
  CopyWork copy;
  copy.parameters.dstPtr = {to, rows.to_pitch, rows.width, rows.height};
  copy.parameters.srcPtr = {const_cast<void*>(from), rows.from_pitch, rows.width, rows.height};
  copy.parameters.extent = {rows.width, rows.height, 1};
  copy.parameters.kind = kind;
  return copy;
}

FillWork FillRows(void* to, std::uint64_t pitch, std::uint32_t value, std::uint32_t element_bytes,
                  std::uint64_t width, std::uint64_t height) {
  FillWork fill;
  fill.parameters.dst = to;
  fill.parameters.pitch = height == 1 ? 0 : pitch;
  fill.parameters.value = value;
  fill.parameters.elementSize = element_bytes;
  fill.parameters.width = width;
  fill.parameters.height = height;
  return fill;
}

}  // namespace torpor::shim
