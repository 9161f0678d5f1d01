// The entries about nodes of any kind, and about empty and child nodes.
#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/copy/linear_volume.h"
#include "client_shim/cudart/graph/graph_lock.h"
#include "client_shim/cudart/graph/memory_work.h"
#include "client_shim/cudart/graph_api/make_work.h"
#include "client_shim/cudart/graph_api/node_access.h"

namespace torpor::shim {
namespace {

cudaKernelNodeParams Plain(const cudaKernelNodeParamsV2& kernel) {
  return {kernel.func,           kernel.gridDim,      kernel.blockDim,
          kernel.sharedMemBytes, kernel.kernelParams, kernel.extra};
}

cudaMemsetParams Plain(const cudaMemsetParamsV2& fill) {
  return {fill.dst, fill.pitch, fill.value, fill.elementSize, fill.width, fill.height};
}

// Translates the newer structure and passes the address back.
cudaError_t MakeAllocation(cudaMemAllocNodeParamsV2& allocation, NodeWork& work) {
  cudaMemAllocNodeParams plain{allocation.poolProps, allocation.accessDescs,
                               allocation.accessDescCount, allocation.bytesize, nullptr};
  TORPOR_TRY(MakeAllocationWork(plain, work));
  allocation.dptr = plain.dptr;
  return cudaSuccess;
}

auto CloneOf(cudaGraph_t graph) {
  return [graph](NodeWork& work) {
    const GraphLock lock;
    return MakeChildWork(graph, work);
  };
}

// Makes work of any kind. For an allocation node, stores the address in `parameters`.
cudaError_t MakeWork(cudaGraphNodeParams& parameters, NodeWork& work) {
  switch (parameters.type) {
    case cudaGraphNodeTypeKernel:
      return MakeKernelWork(Plain(parameters.kernel), work);
    case cudaGraphNodeTypeMemcpy:
      return MakeCopyWork(parameters.memcpy.copyParams, work);
    case cudaGraphNodeTypeMemset:
      return MakeFillWork(Plain(parameters.memset), work);
    case cudaGraphNodeTypeHost:
      return MakeHostWork({parameters.host.fn, parameters.host.userData}, work);
    case cudaGraphNodeTypeGraph:
      return CloneOf(parameters.graph.graph)(work);
    case cudaGraphNodeTypeEmpty:
      work = EmptyWork();
      return cudaSuccess;
    case cudaGraphNodeTypeWaitEvent:
      return MakeEventWork<EventWaitWork>(parameters.eventWait.event, work);
    case cudaGraphNodeTypeEventRecord:
      return MakeEventWork<EventRecordWork>(parameters.eventRecord.event, work);
    case cudaGraphNodeTypeMemAlloc:
      return MakeAllocation(parameters.alloc, work);
    case cudaGraphNodeTypeMemFree:
      return MakeFreeWork(parameters.free.dptr, work);
    default:
      break;
  }
  Core().WarnOnce("graph node " + std::to_string(parameters.type),
                  "graph nodes of type " + std::to_string(parameters.type) +
                      " (conditional, semaphores) are not supported");
  return cudaErrorNotSupported;
}

// The same for existing nodes. Allocation and free nodes cannot change.
cudaError_t MakeNewWork(cudaGraphNodeParams& parameters, NodeWork& work) {
  const bool is_memory =
      parameters.type == cudaGraphNodeTypeMemAlloc || parameters.type == cudaGraphNodeTypeMemFree;
  return is_memory ? cudaErrorNotSupported : MakeWork(parameters, work);
}

// Refuses allocation and free nodes, as CUDA does.
cudaError_t DestroyNode(cudaGraphNode_t handle) {
  const GraphLock lock;
  GraphNode* const node = Graph::FindNode(handle);
  if (!node) return cudaErrorInvalidValue;
  const cudaGraphNodeType type = TypeOf(node->work);
  if (type == cudaGraphNodeTypeMemAlloc || type == cudaGraphNodeTypeMemFree)
    return cudaErrorNotSupported;
  node->graph->Remove(*node);
  return cudaSuccess;
}

cudaError_t TellType(cudaGraphNode_t handle, cudaGraphNodeType* type) {
  const GraphLock lock;
  const GraphNode* const node = Graph::FindNode(handle);
  if (!node || !type) return cudaErrorInvalidValue;
  *type = TypeOf(node->work);
  return cudaSuccess;
}

// The returned graph belongs to the node; the program may change the graph.
cudaError_t TellChild(cudaGraphNode_t node, cudaGraph_t* graph) {
  const GraphLock lock;
  ChildWork* work = nullptr;
  TORPOR_TRY(FindWork(node, work));
  if (!graph) return cudaErrorInvalidValue;
  *graph = work->graph->handle();
  return cudaSuccess;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph,
                             const cudaGraphNode_t* dependencies, const cudaGraphEdgeData* edges,
                             size_t count, struct cudaGraphNodeParams* parameters) {
  return Entry([&] {
    return AddMade(node, graph, {dependencies, edges, count}, MakeFrom(parameters, MakeWork));
  });
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams* parameters) {
  return Entry([&] { return SetMade(node, MakeFrom(parameters, MakeNewWork)); });
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                       struct cudaGraphNodeParams* parameters) {
  return Entry([&] { return SetExecMade(exec, node, MakeFrom(parameters, MakeNewWork)); });
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  return Entry([&] { return DestroyNode(node); });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType* type) {
  return Entry([&] { return TellType(node, type); });
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                  const cudaGraphNode_t* dependencies, size_t count) {
  return Entry([&] { return AddNode(node, graph, {dependencies, nullptr, count}, EmptyWork()); });
}

// Clones the child: later changes of the program's graph have no effect on the node.
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* dependencies, size_t count,
                                       cudaGraph_t child) {
  return Entry([&] {
    return AddMade(node, graph, {dependencies, nullptr, count}, CloneOf(child));
  });
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph) {
  return Entry([&] { return TellChild(node, graph); });
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaGraph_t child) {
  return Entry([&] { return SetExecMade(exec, node, CloneOf(child)); });
}
