// The entries about copy nodes. Nodes copy variables by address.
#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/copy/linear_volume.h"
#include "client_shim/cudart/copy/memcpy.h"
#include "client_shim/cudart/graph_api/node_access.h"

namespace torpor::shim {
namespace {

auto Linear(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return [=](NodeWork& work) {
    return MakeCopyWork(LinearCopyWork(to, from, bytes, kind).parameters, work);
  };
}

// Finds the address of a part of a variable, checking the range.
cudaError_t PartOf(const void* symbol, std::size_t bytes, std::size_t offset, void*& part) {
  void* begin = nullptr;
  std::size_t size = 0;
  TORPOR_TRY(cudaGetSymbolAddress(&begin, symbol));
  TORPOR_TRY(cudaGetSymbolSize(&size, symbol));
  if (offset > size || bytes > size - offset) return cudaErrorInvalidValue;
  part = static_cast<std::uint8_t*>(begin) + offset;
  return cudaSuccess;
}

auto ToSymbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
              cudaMemcpyKind kind) {
  return [=](NodeWork& work) -> cudaError_t {
    void* to = nullptr;
    TORPOR_TRY(PartOf(symbol, bytes, offset, to));
    return Linear(to, from, bytes, kind)(work);
  };
}

auto FromSymbol(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                cudaMemcpyKind kind) {
  return [=](NodeWork& work) -> cudaError_t {
    void* from = nullptr;
    TORPOR_TRY(PartOf(symbol, bytes, offset, from));
    return Linear(to, from, bytes, kind)(work);
  };
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

// Checks the route now; the bytes are read and written by each launch, pageable memory included.
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const struct cudaMemcpy3DParms* parameters) {
  return Entry([&] {
    return AddMade(node, graph, {dependencies, nullptr, count}, MakeFrom(parameters, MakeCopyWork));
  });
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node,
                                         struct cudaMemcpy3DParms* parameters) {
  return Entry([&] { return TellWork(node, &CopyWork::parameters, parameters); });
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemcpy3DParms* parameters) {
  return Entry([&] { return SetMade(node, MakeFrom(parameters, MakeCopyWork)); });
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms* parameters) {
  return Entry([&] { return SetExecMade(exec, node, MakeFrom(parameters, MakeCopyWork)); });
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, size_t count, void* to,
                                     const void* from, size_t bytes, enum cudaMemcpyKind kind) {
  return Entry([&] {
    return AddMade(node, graph, {dependencies, nullptr, count}, Linear(to, from, bytes, kind));
  });
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from,
                                           size_t bytes, enum cudaMemcpyKind kind) {
  return Entry([&] { return SetMade(node, Linear(to, from, bytes, kind)); });
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* to,
                                               const void* from, size_t bytes,
                                               enum cudaMemcpyKind kind) {
  return Entry([&] { return SetExecMade(exec, node, Linear(to, from, bytes, kind)); });
}

// Loads the variable's module and fixes the address now.
cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                           const cudaGraphNode_t* dependencies, size_t count,
                                           const void* symbol, const void* from, size_t bytes,
                                           size_t offset, enum cudaMemcpyKind kind) {
  return Entry([&] {
    return AddMade(node, graph, {dependencies, nullptr, count},
                   ToSymbol(symbol, from, bytes, offset, kind));
  });
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol,
                                                 const void* from, size_t bytes, size_t offset,
                                                 enum cudaMemcpyKind kind) {
  return Entry([&] { return SetMade(node, ToSymbol(symbol, from, bytes, offset, kind)); });
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                     const void* symbol, const void* from,
                                                     size_t bytes, size_t offset,
                                                     enum cudaMemcpyKind kind) {
  return Entry(
      [&] { return SetExecMade(exec, node, ToSymbol(symbol, from, bytes, offset, kind)); });
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* dependencies, size_t count,
                                             void* to, const void* symbol, size_t bytes,
                                             size_t offset, enum cudaMemcpyKind kind) {
  return Entry([&] {
    return AddMade(node, graph, {dependencies, nullptr, count},
                   FromSymbol(to, symbol, bytes, offset, kind));
  });
}

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* to,
                                                   const void* symbol, size_t bytes, size_t offset,
                                                   enum cudaMemcpyKind kind) {
  return Entry([&] { return SetMade(node, FromSymbol(to, symbol, bytes, offset, kind)); });
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                       void* to, const void* symbol, size_t bytes,
                                                       size_t offset, enum cudaMemcpyKind kind) {
  return Entry(
      [&] { return SetExecMade(exec, node, FromSymbol(to, symbol, bytes, offset, kind)); });
}
