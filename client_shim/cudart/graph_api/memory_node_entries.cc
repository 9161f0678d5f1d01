// The entries about allocation and free nodes, and about the memory of all graphs.
#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph/graph_memory.h"
#include "client_shim/cudart/graph/memory_work.h"
#include "client_shim/cudart/graph_api/node_access.h"

namespace torpor::shim {
namespace {

// A single account serves all devices.
cudaError_t TellUse(int device, cudaGraphMemAttributeType attribute, void* value) {
  if (!Core().OfDevice(device)) return cudaErrorInvalidDevice;
  if (!value) return cudaErrorInvalidValue;
  const GraphMemoryUse use = CurrentGraphMemoryUse();
  auto& bytes = *static_cast<std::uint64_t*>(value);
  switch (attribute) {
    case cudaGraphMemAttrUsedMemCurrent:
      bytes = use.used;
      return cudaSuccess;
    case cudaGraphMemAttrUsedMemHigh:
      bytes = use.max_used;
      return cudaSuccess;
    case cudaGraphMemAttrReservedMemCurrent:
      bytes = use.reserved;
      return cudaSuccess;
    case cudaGraphMemAttrReservedMemHigh:
      bytes = use.max_reserved;
      return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}

// Only the high-water marks can be set, and only to 0, which stands for the present value.
cudaError_t ResetUse(int device, cudaGraphMemAttributeType attribute, const void* value) {
  if (!Core().OfDevice(device)) return cudaErrorInvalidDevice;
  if (!value || *static_cast<const std::uint64_t*>(value) != 0) return cudaErrorInvalidValue;
  if (attribute == cudaGraphMemAttrUsedMemHigh)
    ResetMaxUsed();
  else if (attribute == cudaGraphMemAttrReservedMemHigh)
    ResetMaxReserved();
  else
    return cudaErrorInvalidValue;
  return cudaSuccess;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

// Allocates the memory now and stores the address in the parameters.
cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, size_t count,
                                     struct cudaMemAllocNodeParams* parameters) {
  return Entry([&] {
    return AddMade(node, graph, {dependencies, nullptr, count},
                   MakeFrom(parameters, MakeAllocationWork));
  });
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                    const cudaGraphNode_t* dependencies, size_t count,
                                    void* address) {
  return Entry([&] {
    return AddMade(node, graph, {dependencies, nullptr, count},
                   [&](NodeWork& work) { return MakeFreeWork(address, work); });
  });
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node,
                                           struct cudaMemAllocNodeParams* parameters) {
  return Entry([&] { return TellWork(node, &AllocationWork::parameters, parameters); });
}

// `address`: a pointer to the result, by CUDA's signature.
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* address) {
  return Entry([&] { return TellWork(node, &FreeWork::address, static_cast<void**>(address)); });
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute,
                                           void* value) {
  return Entry([&] { return TellUse(device, attribute, value); });
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute,
                                           void* value) {
  return Entry([&] { return ResetUse(device, attribute, value); });
}

// Frees nothing: memory of graphs lives as long as the graphs.
cudaError_t cudaDeviceGraphMemTrim(int device) {
  return Entry([&] {
    if (!Core().OfDevice(device)) return cudaErrorInvalidDevice;
    TrimGraphMemory();
    return cudaSuccess;
  });
}
