#pragma once

#include <cuda_runtime_api.h>

#include <utility>
#include <vector>

#include "client_shim/cudart/graph/graph.h"

namespace torpor::shim {

// Nodes with their earlier work, so that an update can be undone.
using ReplacedWork = std::vector<std::pair<GraphNode*, NodeWork>>;

// Gives every node of `own` the work of the node of `given` with the same place in order of
// addition. Returns false, without any change, if structures or kinds of nodes differ; `info` then
// names the difference.
bool UpdateWork(Graph& own, const Graph& given, cudaGraphExecUpdateResultInfo& info,
                ReplacedWork& replaced);

}  // namespace torpor::shim
