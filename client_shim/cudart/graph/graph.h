#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <span>
#include <vector>

#include "client_shim/cudart/graph/node_work.h"
#include "client_shim/cudart/graph/user_object.h"

namespace torpor::shim {

struct GraphNode;

// An ordering of two nodes, as kept at either end. A graph has no two equal edges.
struct GraphEdge {
  GraphNode* node = nullptr;  // the other end
  cudaGraphEdgeData data{};
};

// A node; a cudaGraphNode_t is the address of a GraphNode. The graph owns the node.
struct GraphNode {
  Graph* graph = nullptr;
  NodeWork work;
  std::vector<GraphEdge> dependencies;
  std::vector<GraphEdge> dependents;
  const GraphNode* original = nullptr;    // the node this was cloned from; may be dangling
  std::vector<void*> parameter_pointers;  // array returned by cudaGraphKernelNodeGetParams

  cudaGraphNode_t handle() const {
    return reinterpret_cast<cudaGraphNode_t>(const_cast<GraphNode*>(this));
  }
};

// The structure of a graph; a cudaGraph_t is the address of a Graph. Cycles can be built and show
// in TopologicalOrder. Not thread-safe; GraphLock guards the graphs of programs.
class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Returns null if no live graph or node has the handle. Thread-safe.
  static Graph* Find(cudaGraph_t handle);
  static GraphNode* FindNode(cudaGraphNode_t handle);
  cudaGraph_t handle() { return reinterpret_cast<cudaGraph_t>(this); }

  GraphNode& Add(NodeWork work);
  // Returns false if a node belongs to another graph, both nodes are the same, or the edge exists.
  bool Connect(GraphNode& from, GraphNode& to, const cudaGraphEdgeData& data);
  // Returns false if the edge does not exist.
  bool Disconnect(GraphNode& from, GraphNode& to, const cudaGraphEdgeData& data);
  // Deletes the node and its edges.
  void Remove(GraphNode& node);

  // All nodes, in order of addition.
  std::span<const std::unique_ptr<GraphNode>> nodes() const { return nodes_; }
  // Orders the nodes, each after its dependencies. Returns false for a cycle.
  bool TopologicalOrder(std::vector<const GraphNode*>& order) const;
  // Copies the graph and, recursively, the graphs of child nodes. Each copy of a node knows the
  // original; the copy holds references of its own to the user objects.
  std::unique_ptr<Graph> Clone() const;

  UserReferences& user_references() { return user_references_; }

 private:
  std::vector<std::unique_ptr<GraphNode>> nodes_;
  UserReferences user_references_;
};

}  // namespace torpor::shim
