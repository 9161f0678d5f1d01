#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <span>
#include <vector>

#include "client_shim/cudart/graph/node_work.h"
#include "client_shim/cudart/graph/user_object.h"

namespace torpor::shim {

struct GraphNode;

// That one node comes after another; of two equal ones in a graph there is only one.
struct GraphEdge {
  GraphNode* node = nullptr;  // the other end
  cudaGraphEdgeData data{};
};

// A cudaGraphNode_t is the address of one.
struct GraphNode {
  Graph* graph = nullptr;
  NodeWork work;
  std::vector<GraphEdge> dependencies;
  std::vector<GraphEdge> dependents;
  const GraphNode* original = nullptr;    // of a clone's node; perhaps gone
  std::vector<void*> parameter_pointers;  // what cudaGraphKernelNodeGetParams has given away

  cudaGraphNode_t handle() const {
    return reinterpret_cast<cudaGraphNode_t>(const_cast<GraphNode*>(this));
  }
};

// The structure of a graph. Cycles can be built and come to light in TopologicalOrder. Not
// thread-safe; GraphLock guards those that programs hold.
class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Null if the handle is no live graph's or node's.
  static Graph* Find(cudaGraph_t handle);
  static GraphNode* FindNode(cudaGraphNode_t handle);
  cudaGraph_t handle() { return reinterpret_cast<cudaGraph_t>(this); }

  GraphNode& Add(NodeWork work);
  // False: one of the nodes is another graph's, they are the same, or the edge is there already.
  bool Connect(GraphNode& from, GraphNode& to, const cudaGraphEdgeData& data);
  // False: there is no such edge.
  bool Disconnect(GraphNode& from, GraphNode& to, const cudaGraphEdgeData& data);
  // With its edges.
  void Remove(GraphNode& node);

  // In the order in which they were added.
  std::span<const std::unique_ptr<GraphNode>> nodes() const { return nodes_; }
  // Each after all that it depends on. False: there is a cycle.
  bool TopologicalOrder(std::vector<const GraphNode*>& order) const;
  // With graphs of nodes, however deep; each node knows its original, each user object is held.
  std::unique_ptr<Graph> Clone() const;

  UserReferences& user_references() { return user_references_; }

 private:
  std::vector<std::unique_ptr<GraphNode>> nodes_;
  UserReferences user_references_;
};

}  // namespace torpor::shim
