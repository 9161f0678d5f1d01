// The entries about whole graphs and edges.
#include <algorithm>
#include <vector>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph/graph_lock.h"
#include "client_shim/cudart/graph_api/node_access.h"

namespace torpor::shim {
namespace {

// The program owns the graph until cudaGraphDestroy.
cudaError_t Create(cudaGraph_t* graph, unsigned flags) {
  if (!graph || flags != 0) return cudaErrorInvalidValue;
  *graph = (new Graph())->handle();
  return cudaSuccess;
}

// Instantiated graphs are clones and live on.
cudaError_t Destroy(cudaGraph_t handle) {
  const GraphLock lock;
  Graph* const graph = Graph::Find(handle);
  if (!graph) return cudaErrorInvalidValue;
  delete graph;
  return cudaSuccess;
}

cudaError_t Clone(cudaGraph_t* clone, cudaGraph_t original) {
  const GraphLock lock;
  const Graph* const graph = Graph::Find(original);
  if (!clone || !graph) return cudaErrorInvalidValue;
  *clone = graph->Clone().release()->handle();
  return cudaSuccess;
}

// Compares addresses only: the original may be gone.
cudaError_t FindInClone(cudaGraphNode_t* found, cudaGraphNode_t original, cudaGraph_t clone) {
  const GraphLock lock;
  const Graph* const graph = Graph::Find(clone);
  if (!found || !graph) return cudaErrorInvalidValue;
  for (const auto& node : graph->nodes()) {
    if (node->original != reinterpret_cast<const GraphNode*>(original)) continue;
    *found = node->handle();
    return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}

// Returns a list by CUDA's convention: without an array only counts; fills an array that is too
// large with nulls; sets `count` to the number of items written.
class NodeList {
 public:
  explicit NodeList(cudaGraphNode_t* nodes, std::size_t* count) : nodes_(nodes), count_(count) {}

  void Add(const GraphNode& node) {
    if (nodes_ && found_ < *count_) nodes_[found_] = node.handle();
    ++found_;
  }
  void Finish() {
    if (nodes_) {
      for (std::size_t i = found_; i < *count_; ++i) nodes_[i] = nullptr;
      found_ = std::min(found_, *count_);
    }
    *count_ = found_;
  }

 private:
  cudaGraphNode_t* const nodes_;
  std::size_t* const count_;
  std::size_t found_ = 0;
};

// Lists all nodes, or the nodes without dependencies, in order of addition.
cudaError_t ListNodes(cudaGraph_t handle, cudaGraphNode_t* nodes, std::size_t* count,
                      bool only_roots) {
  const GraphLock lock;
  const Graph* const graph = Graph::Find(handle);
  if (!graph || !count) return cudaErrorInvalidValue;
  NodeList list(nodes, count);
  for (const auto& node : graph->nodes())
    if (!only_roots || node->dependencies.empty()) list.Add(*node);
  list.Finish();
  return cudaSuccess;
}

// Lists both ends of every edge; `data` may be null.
cudaError_t ListEdges(cudaGraph_t handle, cudaGraphNode_t* from, cudaGraphNode_t* to,
                      cudaGraphEdgeData* data, std::size_t* count) {
  const GraphLock lock;
  const Graph* const graph = Graph::Find(handle);
  if (!graph || !count || (from == nullptr) != (to == nullptr)) return cudaErrorInvalidValue;
  const std::size_t room = *count;
  std::size_t from_count = room;
  NodeList from_list(from, &from_count);
  NodeList to_list(to, count);
  std::size_t i = 0;
  for (const auto& node : graph->nodes()) {
    for (const GraphEdge& edge : node->dependencies) {
      from_list.Add(*edge.node);
      to_list.Add(*node);
      if (data && i < room) data[i] = edge.data;
      ++i;
    }
  }
  from_list.Finish();
  to_list.Finish();
  return cudaSuccess;
}

// Lists the dependencies or the dependents of a node, depending on `direction`.
cudaError_t ListNeighbours(cudaGraphNode_t handle, std::vector<GraphEdge> GraphNode::*direction,
                           cudaGraphNode_t* nodes, cudaGraphEdgeData* data, std::size_t* count) {
  const GraphLock lock;
  const GraphNode* const node = Graph::FindNode(handle);
  if (!node || !count) return cudaErrorInvalidValue;
  const std::vector<GraphEdge>& edges = node->*direction;
  for (std::size_t i = 0; data && i < std::min(*count, edges.size()); ++i) data[i] = edges[i].data;
  NodeList list(nodes, count);
  for (const GraphEdge& edge : edges) list.Add(*edge.node);
  list.Finish();
  return cudaSuccess;
}

using ChangeEdge = bool (Graph::*)(GraphNode&, GraphNode&, const cudaGraphEdgeData&);

// Calls `change` for each edge from[i] -> to[i].
cudaError_t ChangeEdges(cudaGraph_t handle, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                        const cudaGraphEdgeData* data, std::size_t count, ChangeEdge change) {
  const GraphLock lock;
  Graph* const graph = Graph::Find(handle);
  if (!graph || (count > 0 && (!from || !to))) return cudaErrorInvalidValue;
  for (std::size_t i = 0; i < count; ++i) {
    GraphNode* const one = Graph::FindNode(from[i]);
    GraphNode* const other = Graph::FindNode(to[i]);
    const bool changed =
        one && other && (graph->*change)(*one, *other, data ? data[i] : cudaGraphEdgeData{});
    if (!changed) return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  return Entry([&] { return Create(graph, flags); });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return Entry([&] { return Destroy(graph); });
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t original) {
  return Entry([&] { return Clone(clone, original); });
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original,
                                     cudaGraph_t clone) {
  return Entry([&] { return FindInClone(node, original, clone); });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return Entry([&] { return ListNodes(graph, nodes, count, /*only_roots=*/false); });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return Entry([&] { return ListNodes(graph, nodes, count, /*only_roots=*/true); });
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* data, size_t* count) {
  return Entry([&] { return ListEdges(graph, from, to, data, count); });
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t handle, cudaGraphNode_t* nodes,
                                         cudaGraphEdgeData* data, size_t* count) {
  return Entry(
      [&] { return ListNeighbours(handle, &GraphNode::dependencies, nodes, data, count); });
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t handle, cudaGraphNode_t* nodes,
                                           cudaGraphEdgeData* data, size_t* count) {
  return Entry([&] { return ListNeighbours(handle, &GraphNode::dependents, nodes, data, count); });
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData* data,
                                     size_t count) {
  return Entry([&] { return ChangeEdges(graph, from, to, data, count, &Graph::Connect); });
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData* data,
                                        size_t count) {
  return Entry([&] { return ChangeEdges(graph, from, to, data, count, &Graph::Disconnect); });
}
