#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>
#include <variant>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph/graph.h"
#include "client_shim/cudart/graph/graph_lock.h"

// What the entries about single nodes share. cudaErrorInvalidValue for what is no live graph or
// node, or none of that kind.
namespace torpor::shim {

// A node's dependencies as programs give them; `edges` may be null.
struct Dependencies {
  const cudaGraphNode_t* nodes = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  std::size_t count = 0;
};

cudaError_t AddNode(cudaGraphNode_t* out, cudaGraph_t graph, const Dependencies& dependencies,
                    NodeWork work);

// Replaces the work by other of the same kind: of a node, or of what was instantiated from it.
cudaError_t SetNode(cudaGraphNode_t node, NodeWork work);
cudaError_t SetExecNode(cudaGraphExec_t exec, cudaGraphNode_t node, NodeWork work);

// The same with the work that `make(NodeWork&)` gives.
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

// A `make` out of what the program points to; a null pointer makes nothing.
template <typename Parameters>
auto MakeFrom(Parameters* parameters, cudaError_t (*make_work)(Parameters&, NodeWork&)) {
  return [=](NodeWork& work) {
    return parameters ? make_work(*parameters, work) : cudaErrorInvalidValue;
  };
}

// Under GraphLock.
template <typename Work>
cudaError_t FindWork(cudaGraphNode_t handle, Work*& work) {
  GraphNode* const node = Graph::FindNode(handle);
  work = node ? std::get_if<Work>(&node->work) : nullptr;
  return work ? cudaSuccess : cudaErrorInvalidValue;
}

// Tells one member of the node's work.
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
