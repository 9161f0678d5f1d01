#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>
#include <variant>

#include "client_shim/cudart/graph/graph.h"

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

// Under GraphLock.
template <typename Work>
cudaError_t FindWork(cudaGraphNode_t handle, Work*& work) {
  GraphNode* const node = Graph::FindNode(handle);
  work = node ? std::get_if<Work>(&node->work) : nullptr;
  return work ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace torpor::shim
