#pragma once

#include <cuda_runtime_api.h>

#include <utility>
#include <vector>

#include "client_shim/cudart/graph/graph.h"

namespace torpor::shim {

// Nodes and the work that they had.
using ReplacedWork = std::vector<std::pair<GraphNode*, NodeWork>>;

// Gives every node of `own` the work of the node of `given` that was added in the same place.
// False, and nothing is changed, if their structure or their nodes' kinds differ: `info` says
// where.
bool UpdateWork(Graph& own, const Graph& given, cudaGraphExecUpdateResultInfo& info,
                ReplacedWork& replaced);

}  // namespace torpor::shim
