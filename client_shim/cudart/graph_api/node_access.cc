#include "client_shim/cudart/graph_api/node_access.h"

#include <vector>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph/graph_lock.h"
#include "client_shim/cudart/graph_api/graph_exec.h"

namespace torpor::shim {

cudaError_t AddNode(cudaGraphNode_t* out, cudaGraph_t graph_handle,
                    const Dependencies& dependencies, NodeWork work) {
  const GraphLock lock;
  Graph* const graph = Graph::Find(graph_handle);
  if (!out || !graph || (dependencies.count > 0 && !dependencies.nodes))
    return cudaErrorInvalidValue;
  std::vector<GraphNode*> before;
  for (std::size_t i = 0; i < dependencies.count; ++i) {
    GraphNode* const node = Graph::FindNode(dependencies.nodes[i]);
    if (!node || node->graph != graph) return cudaErrorInvalidValue;
    before.push_back(node);
  }
  GraphNode& node = graph->Add(std::move(work));
  for (std::size_t i = 0; i < before.size(); ++i) {
    const cudaGraphEdgeData edge = dependencies.edges ? dependencies.edges[i] : cudaGraphEdgeData{};
    if (graph->Connect(*before[i], node, edge)) continue;
    graph->Remove(node);  // a dependency was given twice
    return cudaErrorInvalidValue;
  }
  *out = node.handle();
  return cudaSuccess;
}

cudaError_t SetNode(cudaGraphNode_t handle, NodeWork work) {
  const GraphLock lock;
  GraphNode* const node = Graph::FindNode(handle);
  if (!node || node->work.index() != work.index()) return cudaErrorInvalidValue;
  SetParameters(node->work, std::move(work));
  return cudaSuccess;
}

cudaError_t SetExecNode(cudaGraphExec_t handle, cudaGraphNode_t node, NodeWork work) {
  const std::shared_ptr<GraphExec> exec = GraphExec::Find(handle);
  return exec ? exec->SetWork(node, std::move(work)) : cudaErrorInvalidValue;
}

}  // namespace torpor::shim
