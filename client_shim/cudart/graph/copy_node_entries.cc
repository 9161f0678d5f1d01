// The entries about copy nodes. A variable is copied by its address.
#include "client_shim/cudart/entry.h"
#include "client_shim/cudart/graph/graph_lock.h"
#include "client_shim/cudart/graph/make_work.h"
#include "client_shim/cudart/graph/node_access.h"

namespace torpor::shim {
namespace {

cudaError_t MakeLinear(void* to, const void* from, std::uint64_t bytes, cudaMemcpyKind kind,
                       NodeWork& work) {
  return MakeCopyWork(LinearCopy(to, from, bytes, kind).parameters, work);
}

cudaError_t PartOf(const void* symbol, std::size_t bytes, std::size_t offset, void*& part) {
  void* begin = nullptr;
  std::size_t size = 0;
  TORPOR_TRY(cudaGetSymbolAddress(&begin, symbol));
  TORPOR_TRY(cudaGetSymbolSize(&size, symbol));
  if (offset > size || bytes > size - offset) return cudaErrorInvalidValue;
  part = static_cast<std::uint8_t*>(begin) + offset;
  return cudaSuccess;
}

cudaError_t MakeToSymbol(const void* symbol, const void* from, std::size_t bytes,
                         std::size_t offset, cudaMemcpyKind kind, NodeWork& work) {
  void* to = nullptr;
  TORPOR_TRY(PartOf(symbol, bytes, offset, to));
  return MakeLinear(to, from, bytes, kind, work);
}

cudaError_t MakeFromSymbol(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                           cudaMemcpyKind kind, NodeWork& work) {
  void* from = nullptr;
  TORPOR_TRY(PartOf(symbol, bytes, offset, from));
  return MakeLinear(to, from, bytes, kind, work);
}

cudaError_t Make(const cudaMemcpy3DParms* parameters, NodeWork& work) {
  return parameters ? MakeCopyWork(*parameters, work) : cudaErrorInvalidValue;
}

cudaError_t Tell(cudaGraphNode_t node, cudaMemcpy3DParms* parameters) {
  const GraphLock lock;
  CopyWork* copy = nullptr;
  TORPOR_TRY(FindWork(node, copy));
  if (!parameters) return cudaErrorInvalidValue;
  *parameters = copy->parameters;
  return cudaSuccess;
}

// What becomes of the work that `make` gives.
template <typename MakeWork>
cudaError_t Add(cudaGraphNode_t* node, cudaGraph_t graph, const Dependencies& dependencies,
                const MakeWork& make) {
  NodeWork work;
  TORPOR_TRY(make(work));
  return AddNode(node, graph, dependencies, std::move(work));
}

template <typename MakeWork>
cudaError_t Set(cudaGraphNode_t node, const MakeWork& make) {
  NodeWork work;
  TORPOR_TRY(make(work));
  return SetNode(node, std::move(work));
}

template <typename MakeWork>
cudaError_t SetExec(cudaGraphExec_t exec, cudaGraphNode_t node, const MakeWork& make) {
  NodeWork work;
  TORPOR_TRY(make(work));
  return SetExecNode(exec, node, std::move(work));
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const struct cudaMemcpy3DParms* parameters) {
  return Entry([&] {
    return Add(node, graph, {dependencies, nullptr, count},
               [&](NodeWork& work) { return Make(parameters, work); });
  });
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node,
                                         struct cudaMemcpy3DParms* parameters) {
  return Entry([&] { return Tell(node, parameters); });
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemcpy3DParms* parameters) {
  return Entry([&] { return Set(node, [&](NodeWork& work) { return Make(parameters, work); }); });
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms* parameters) {
  return Entry(
      [&] { return SetExec(exec, node, [&](NodeWork& work) { return Make(parameters, work); }); });
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, size_t count, void* to,
                                     const void* from, size_t bytes, enum cudaMemcpyKind kind) {
  return Entry([&] {
    return Add(node, graph, {dependencies, nullptr, count},
               [&](NodeWork& work) { return MakeLinear(to, from, bytes, kind, work); });
  });
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from,
                                           size_t bytes, enum cudaMemcpyKind kind) {
  return Entry([&] {
    return Set(node, [&](NodeWork& work) { return MakeLinear(to, from, bytes, kind, work); });
  });
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* to,
                                               const void* from, size_t bytes,
                                               enum cudaMemcpyKind kind) {
  return Entry([&] {
    return SetExec(exec, node,
                   [&](NodeWork& work) { return MakeLinear(to, from, bytes, kind, work); });
  });
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                           const cudaGraphNode_t* dependencies, size_t count,
                                           const void* symbol, const void* from, size_t bytes,
                                           size_t offset, enum cudaMemcpyKind kind) {
  return Entry([&] {
    return Add(node, graph, {dependencies, nullptr, count}, [&](NodeWork& work) {
      return MakeToSymbol(symbol, from, bytes, offset, kind, work);
    });
  });
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol,
                                                 const void* from, size_t bytes, size_t offset,
                                                 enum cudaMemcpyKind kind) {
  return Entry([&] {
    return Set(node, [&](NodeWork& work) {
      return MakeToSymbol(symbol, from, bytes, offset, kind, work);
    });
  });
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                     const void* symbol, const void* from,
                                                     size_t bytes, size_t offset,
                                                     enum cudaMemcpyKind kind) {
  return Entry([&] {
    return SetExec(exec, node, [&](NodeWork& work) {
      return MakeToSymbol(symbol, from, bytes, offset, kind, work);
    });
  });
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* dependencies, size_t count,
                                             void* to, const void* symbol, size_t bytes,
                                             size_t offset, enum cudaMemcpyKind kind) {
  return Entry([&] {
    return Add(node, graph, {dependencies, nullptr, count}, [&](NodeWork& work) {
      return MakeFromSymbol(to, symbol, bytes, offset, kind, work);
    });
  });
}

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* to,
                                                   const void* symbol, size_t bytes, size_t offset,
                                                   enum cudaMemcpyKind kind) {
  return Entry([&] {
    return Set(node, [&](NodeWork& work) {
      return MakeFromSymbol(to, symbol, bytes, offset, kind, work);
    });
  });
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                       void* to, const void* symbol, size_t bytes,
                                                       size_t offset, enum cudaMemcpyKind kind) {
  return Entry([&] {
    return SetExec(exec, node, [&](NodeWork& work) {
      return MakeFromSymbol(to, symbol, bytes, offset, kind, work);
    });
  });
}
