// A graph as text for Graphviz.
#include <cstdio>
#include <string>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph/graph.h"
#include "client_shim/cudart/graph/graph_lock.h"

namespace torpor::shim {
namespace {

// CUDA's name of a node's type.
const char* TypeName(const NodeWork& work) {
  switch (TypeOf(work)) {
    case cudaGraphNodeTypeKernel:
      return "KERNEL";
    case cudaGraphNodeTypeMemcpy:
      return "MEMCPY";
    case cudaGraphNodeTypeMemset:
      return "MEMSET";
    case cudaGraphNodeTypeHost:
      return "HOST";
    case cudaGraphNodeTypeGraph:
      return "GRAPH";
    case cudaGraphNodeTypeWaitEvent:
      return "EVENT_WAIT";
    case cudaGraphNodeTypeEventRecord:
      return "EVENT_RECORD";
    case cudaGraphNodeTypeMemAlloc:
      return "MEM_ALLOC";
    case cudaGraphNodeTypeMemFree:
      return "MEM_FREE";
    default:
      return "EMPTY";
  }
}

// The text inside a node: the type and, for a kernel, the mangled name.
std::string LabelOf(const GraphNode& node) {
  std::string label = TypeName(node.work);
  if (const auto* kernel = std::get_if<KernelWork>(&node.work))
    label += std::string("\\n") + kernel->kernel->name;
  return label;
}

std::string NameOf(const GraphNode& node) { return std::to_string(Address(&node)); }

std::string DotOf(const Graph& graph) {
  std::string dot = "digraph {\n";
  for (const auto& node : graph.nodes())
    dot += "  " + NameOf(*node) + " [label=\"" + LabelOf(*node) + "\"];\n";
  for (const auto& node : graph.nodes())
    for (const GraphEdge& edge : node->dependencies)
      dot += "  " + NameOf(*edge.node) + " -> " + NameOf(*node) + ";\n";
  return dot + "}\n";
}

// Writes the file. cudaErrorOperatingSystem if the file cannot be written.
cudaError_t Print(cudaGraph_t handle, const char* path) {
  const GraphLock lock;
  const Graph* const graph = Graph::Find(handle);
  if (!graph || !path) return cudaErrorInvalidValue;
  const std::string dot = DotOf(*graph);
  std::FILE* const file = std::fopen(path, "we");
  if (!file) return cudaErrorOperatingSystem;
  const bool written = std::fwrite(dot.data(), 1, dot.size(), file) == dot.size();
  return std::fclose(file) == 0 && written ? cudaSuccess : cudaErrorOperatingSystem;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned int) {
  return Entry([&] { return Print(graph, path); });
}
