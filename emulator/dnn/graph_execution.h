#pragma once

#include <vector>

#include "nvidia/cudnn/graph.h"

// Operation graphs of the backend API, step by step on dense values.
namespace torpor::emulator {

// What is not computed here in a valid graph; null: nothing.
const char* DnnGraphObstacle(const DnnGraph& graph);

// Executes a valid graph without an obstacle. `addresses` are those of its tensors in their order;
// virtual ones have none.
void ExecuteGraph(const DnnGraph& graph, const std::vector<void*>& addresses);

}  // namespace torpor::emulator
