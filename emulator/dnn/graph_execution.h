#pragma once

#include <vector>

#include "nvidia/cudnn/graph.h"

// Operation graphs of the backend API, executed operation by operation on dense values.
namespace torpor::emulator {

// Returns the feature of a valid graph that the emulator lacks, or null if the graph can be
// executed.
const char* DnnGraphObstacle(const DnnGraph& graph);

// Executes a valid graph without an obstacle. `addresses` are the addresses of the graph's tensors,
// in order; virtual tensors have null. Call in stream order.
void ExecuteGraph(const DnnGraph& graph, const std::vector<void*>& addresses);

}  // namespace torpor::emulator
