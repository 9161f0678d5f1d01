#include "client_shim/cudart/graph/graph.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "client_shim/cudart/graph/live_handles.h"

namespace torpor::shim {
namespace {

LiveHandles& TheGraphs() {
  static auto* const graphs = new LiveHandles();
  return *graphs;
}

LiveHandles& TheNodes() {
  static auto* const nodes = new LiveHandles();
  return *nodes;
}

auto FindEdge(std::vector<GraphEdge>& edges, const GraphNode& node, const cudaGraphEdgeData& data) {
  return std::find_if(edges.begin(), edges.end(), [&](const GraphEdge& edge) {
    return edge.node == &node && std::memcmp(&edge.data, &data, sizeof data) == 0;
  });
}

NodeWork CloneWork(const NodeWork& work) {
  const auto* const child = std::get_if<ChildWork>(&work);
  return child ? ChildWork{child->graph->Clone()} : work;
}

}  // namespace

Graph::Graph() { TheGraphs().Add(this); }

Graph::~Graph() {
  for (const auto& node : nodes_) TheNodes().Remove(node.get());
  TheGraphs().Remove(this);
}

Graph* Graph::Find(cudaGraph_t handle) {
  return TheGraphs().Contains(handle) ? reinterpret_cast<Graph*>(handle) : nullptr;
}

GraphNode* Graph::FindNode(cudaGraphNode_t handle) {
  return TheNodes().Contains(handle) ? reinterpret_cast<GraphNode*>(handle) : nullptr;
}

GraphNode& Graph::Add(NodeWork work) {
  auto node = std::make_unique<GraphNode>();
  node->graph = this;
  node->work = std::move(work);
  GraphNode& added = *nodes_.emplace_back(std::move(node));
  TheNodes().Add(&added);
  return added;
}

bool Graph::Connect(GraphNode& from, GraphNode& to, const cudaGraphEdgeData& data) {
  if (from.graph != this || to.graph != this || &from == &to) return false;
  if (FindEdge(to.dependencies, from, data) != to.dependencies.end()) return false;
  to.dependencies.push_back({&from, data});
  from.dependents.push_back({&to, data});
  return true;
}

bool Graph::Disconnect(GraphNode& from, GraphNode& to, const cudaGraphEdgeData& data) {
  if (from.graph != this || to.graph != this) return false;
  const auto edge = FindEdge(to.dependencies, from, data);
  if (edge == to.dependencies.end()) return false;
  to.dependencies.erase(edge);
  from.dependents.erase(FindEdge(from.dependents, to, data));
  return true;
}

void Graph::Remove(GraphNode& node) {
  const auto is_node = [&](const GraphEdge& edge) { return edge.node == &node; };
  for (const GraphEdge& edge : node.dependencies) std::erase_if(edge.node->dependents, is_node);
  for (const GraphEdge& edge : node.dependents) std::erase_if(edge.node->dependencies, is_node);
  TheNodes().Remove(&node);
  std::erase_if(nodes_, [&](const auto& owned) { return owned.get() == &node; });
}

bool Graph::TopologicalOrder(std::vector<const GraphNode*>& order) const {
  std::unordered_map<const GraphNode*, std::size_t> missing;
  order.clear();
  for (const auto& node : nodes_) {
    missing[node.get()] = node->dependencies.size();
    if (node->dependencies.empty()) order.push_back(node.get());
  }
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const GraphEdge& edge : order[i]->dependents)
      if (--missing[edge.node] == 0) order.push_back(edge.node);
  return order.size() == nodes_.size();
}

std::unique_ptr<Graph> Graph::Clone() const {
  auto clone = std::make_unique<Graph>();
  std::unordered_map<const GraphNode*, GraphNode*> copies;
  for (const auto& node : nodes_) {
    GraphNode& copy = clone->Add(CloneWork(node->work));
    copy.original = node.get();
    copies[node.get()] = &copy;
  }
  for (const auto& node : nodes_) {
    for (const GraphEdge& edge : node->dependencies)
      copies[node.get()]->dependencies.push_back({copies[edge.node], edge.data});
    for (const GraphEdge& edge : node->dependents)
      copies[node.get()]->dependents.push_back({copies[edge.node], edge.data});
  }
  clone->user_references_.Copy(user_references_);
  return clone;
}

}  // namespace torpor::shim
