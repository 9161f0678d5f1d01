#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "client_shim/cudart/graph/graph.h"

// The order and the place in which a graph's nodes run. Most run on the executor, as one graph of
// commands; nodes with pageable memory, functions or events of the program run in the client,
// between two graphs of commands.
namespace torpor::shim {

// Who runs a node.
enum class Runner {
  kExecutor,
  kClientAtOnce,    // sent in stream order without waiting
  kClientAwaiting,  // when the stream reaches the node
};

struct PlannedNode {
  const GraphNode* node = nullptr;
  std::vector<std::uint32_t> dependencies;  // places of earlier nodes of the same stage
};

// A part of a launch: the client's nodes one after another, then the executor's nodes.
struct Stage {
  std::vector<const GraphNode*> client;
  std::vector<PlannedNode> executor;
};

// Plans a graph's launch. Child nodes are replaced by the nodes of their graphs. Returns false for
// a cycle. The stages refer to nodes of `graph`.
bool MakePlan(const Graph& graph, const std::function<Runner(const GraphNode&)>& runner_of,
              std::vector<Stage>& stages);

}  // namespace torpor::shim
