#include "client_shim/cudart/graph/memory_work.h"

#include <utility>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph/graph_memory.h"

namespace torpor::shim {

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

}  // namespace torpor::shim
