#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>
#include <variant>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph/graph.h"
#include "client_shim/cudart/graph/graph_lock.h"

// Shared by the entries about single nodes. All functions return cudaErrorInvalidValue for unknown
// graphs and nodes and for nodes of another kind.
namespace torpor::shim {

// A node's dependencies in the program's arrays; `edges` may be null.
struct Dependencies {
  const cudaGraphNode_t* nodes = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  std::size_t count = 0;
};

// Adds a node to a graph, behind its dependencies. Takes GraphLock.
cudaError_t AddNode(cudaGraphNode_t* out, cudaGraph_t graph, const Dependencies& dependencies,
                    NodeWork work);

// Replaces a node's work by work of the same kind. Takes GraphLock.
cudaError_t SetNode(cudaGraphNode_t node, NodeWork work);
// The same for the node's copy in an instantiated graph. Waits for a running launch.
cudaError_t SetExecNode(cudaGraphExec_t exec, cudaGraphNode_t node, NodeWork work);

// The same with work made by `make(NodeWork&)`.
template <typename Make>
cudaError_t AddMade(cudaGraphNode_t* out, cudaGraph_t graph, const Dependencies& dependencies,
                    const Make& make) {
  NodeWork work;
  TORPOR_TRY(make(work));
  return AddNode(out, graph, dependencies, std::move(work));
}

template <typename Make>
cudaError_t SetMade(cudaGraphNode_t node, const Make& make) {
  NodeWork work;
  TORPOR_TRY(make(work));
  return SetNode(node, std::move(work));
}

template <typename Make>
cudaError_t SetExecMade(cudaGraphExec_t exec, cudaGraphNode_t node, const Make& make) {
  NodeWork work;
  TORPOR_TRY(make(work));
  return SetExecNode(exec, node, std::move(work));
}

// A `make` for the program's parameters; fails with cudaErrorInvalidValue for a null pointer.
template <typename Parameters>
auto MakeFrom(Parameters* parameters, cudaError_t (*make_work)(Parameters&, NodeWork&)) {
  return [=](NodeWork& work) {
    return parameters ? make_work(*parameters, work) : cudaErrorInvalidValue;
  };
}

// Finds a node's work. Call with GraphLock held.
template <typename Work>
cudaError_t FindWork(cudaGraphNode_t handle, Work*& work) {
  GraphNode* const node = Graph::FindNode(handle);
  work = node ? std::get_if<Work>(&node->work) : nullptr;
  return work ? cudaSuccess : cudaErrorInvalidValue;
}

// Copies a member of a node's work to `told`.
template <typename Work, typename Value>
cudaError_t TellWork(cudaGraphNode_t node, Value Work::*member, Value* told) {
  const GraphLock lock;
  Work* work = nullptr;
  TORPOR_TRY(FindWork(node, work));
  if (!told) return cudaErrorInvalidValue;
  *told = work->*member;
  return cudaSuccess;
}

}  // namespace torpor::shim
