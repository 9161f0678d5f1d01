#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "client_shim/cudart/graph/graph.h"

// In which order a graph's nodes run, and where: most on the executor, as one graph of commands;
// what needs the program's own memory, functions or events in the client, between two of these.
namespace torpor::shim {

enum class Runner {
  kExecutor,
  kClientAtOnce,    // sent in stream order without waiting
  kClientAwaiting,  // when the stream has come to it
};

struct PlannedNode {
  const GraphNode* node = nullptr;
  std::vector<std::uint32_t> dependencies;  // earlier nodes of the same stage, by their place
};

// First the client's nodes, one after another, then the executor's.
struct Stage {
  std::vector<const GraphNode*> client;
  std::vector<PlannedNode> executor;
};

// Nodes with graphs of their own stand for those graphs' nodes. False: there is a cycle.
bool MakePlan(const Graph& graph, const std::function<Runner(const GraphNode&)>& runner_of,
              std::vector<Stage>& stages);

}  // namespace torpor::shim
